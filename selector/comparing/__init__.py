"""Several strategies on one pool from the same evidence: where they differ, what each costs, how stable its picks are."""
