package simulate

// postgresLog numbers lines in the order in which they are written: commits
// must follow one another, as the simulation's do.
const postgresLog = `CREATE TABLE gateway_log (
	seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, kind BIGINT NOT NULL, op BIGINT NOT NULL,
	merchant BYTEA NOT NULL DEFAULT '', id BYTEA NOT NULL DEFAULT '', other BYTEA NOT NULL DEFAULT '', data BYTEA NOT NULL DEFAULT '',
	n0 BIGINT NOT NULL DEFAULT 0, n1 BIGINT NOT NULL DEFAULT 0, n2 BIGINT NOT NULL DEFAULT 0, n3 BIGINT NOT NULL DEFAULT 0,
	n4 BIGINT NOT NULL DEFAULT 0, n5 BIGINT NOT NULL DEFAULT 0, n6 BIGINT NOT NULL DEFAULT 0, n7 BIGINT NOT NULL DEFAULT 0,
	t0 TEXT NOT NULL DEFAULT '', t1 TEXT NOT NULL DEFAULT '', t2 TEXT NOT NULL DEFAULT '',
	t3 TEXT NOT NULL DEFAULT '', t4 TEXT NOT NULL DEFAULT '', t5 TEXT NOT NULL DEFAULT '')`

func postgresTrigger(name, when, table, insertion string) string {
	function := "gateway_log_" + table + "_" + name
	return "CREATE FUNCTION " + function + "() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN " + insertion + "; RETURN NULL; END $$; " +
		"CREATE TRIGGER " + function + " AFTER " + when + " ON " + table + " FOR EACH ROW EXECUTE FUNCTION " + function + "()"
}

// postgresSamePlans keeps the server's autovacuum away from all tables. It runs
// by the real clock, and what it counts changes the planner's choices and so the
// order of rows: a seed on a busy machine would have two traces.
const postgresSamePlans = `DO $$ DECLARE t regclass; BEGIN
	FOR t IN SELECT oid FROM pg_class WHERE relkind = 'r' AND relnamespace = current_schema()::text::regnamespace LOOP
		EXECUTE format('ALTER TABLE %s SET (autovacuum_enabled = false)', t);
	END LOOP;
END $$`
