"""The paper's experiments: grid, runner, tables, figures, report."""
