"""Trainers steered by a curriculum: `trl` and `verl`, and `steering`, which both ask for the next questions."""
