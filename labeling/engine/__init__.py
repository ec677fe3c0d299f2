"""The seam: the only place in the application that imports ``selector``. Rows become arrays, errors become messages."""
