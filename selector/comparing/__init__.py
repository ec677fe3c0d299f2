"""Several strategies on one pool from the same evidence: how they differ, what each costs, how stable it is."""
