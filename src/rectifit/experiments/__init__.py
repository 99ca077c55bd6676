"""The paper's experiments: grid, runner, tables, figures, theory, report."""
