-- serves from 7
-- What the owner calls the device of a session; NULL where the client said nothing.
ALTER TABLE sessions ADD COLUMN device_name TEXT;
