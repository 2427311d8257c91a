"""What a replay shows: tables, claims and their verdicts, figures, pages."""
