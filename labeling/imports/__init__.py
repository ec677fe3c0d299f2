"""Files coming in: questions, calibration items, votes and picks. Every row is accounted for."""
