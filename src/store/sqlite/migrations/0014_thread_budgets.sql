-- What the turns of a thread may use together, as whoever started it has said: JSON. NULL: nothing was said.
ALTER TABLE threads ADD COLUMN budgets TEXT;
