"""The paper's claims, run: tables, figures and theory."""
