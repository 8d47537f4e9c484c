package checker

import "fmt"

// engine is how one database engine writes the log.
type engine struct {
	table   string                                            // statement that creates the log
	row     string                                            // prefix of a column of the row that a trigger is about
	hex     func(expression string) string                    // hexadecimal digits of bytes
	trigger func(name, event, table, insertion string) string // statement that creates a trigger
	prepare []string                                          // further statements
}

// engineOf returns the engine of a name: "sqlite" or "postgres".
func engineOf(name string) (*engine, error) {
	switch name {
	case "sqlite":
		return &engine{table: sqliteLog, trigger: sqliteTrigger, hex: func(x string) string { return "hex(" + x + ")" }}, nil
	case "postgres":
		return &engine{
			table: postgresLog, trigger: postgresTrigger, hex: func(x string) string { return "encode(" + x + ", 'hex')" },
			prepare: []string{postgresNoAutovacuum},
		}, nil
	default:
		return nil, fmt.Errorf("checker: unknown engine %q", name)
	}
}

const sqliteLog = `CREATE TABLE checker_log (
	seq INTEGER NOT NULL PRIMARY KEY, table_id INTEGER NOT NULL, operation INTEGER NOT NULL,
	merchant BLOB NOT NULL, id BLOB NOT NULL, fields TEXT NOT NULL, blob BLOB NOT NULL)`

func sqliteTrigger(name, event, table, insertion string) string {
	return "CREATE TRIGGER checker_log_" + table + "_" + name + " AFTER " + event + " ON " + table + " BEGIN " + insertion + "; END"
}

// postgresLog numbers lines in the order in which they are written: commits must
// follow one another, as the simulation's do.
const postgresLog = `CREATE TABLE checker_log (
	seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, table_id BIGINT NOT NULL, operation BIGINT NOT NULL,
	merchant BYTEA NOT NULL, id BYTEA NOT NULL, fields TEXT NOT NULL, blob BYTEA NOT NULL)`

func postgresTrigger(name, event, table, insertion string) string {
	function := "checker_log_" + table + "_" + name
	return "CREATE FUNCTION " + function + "() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN " + insertion + "; RETURN NULL; END $$; " +
		"CREATE TRIGGER " + function + " AFTER " + event + " ON " + table + " FOR EACH ROW EXECUTE FUNCTION " + function + "()"
}

// postgresNoAutovacuum turns the server's autovacuum off for all tables. It runs by
// the real clock, and its statistics change the planner's choices and so the order of
// rows: on a busy machine a seed would have two traces.
const postgresNoAutovacuum = `DO $$ DECLARE t regclass; BEGIN
	FOR t IN SELECT oid FROM pg_class WHERE relkind = 'r' AND relnamespace = current_schema()::text::regnamespace LOOP
		EXECUTE format('ALTER TABLE %s SET (autovacuum_enabled = false)', t);
	END LOOP;
END $$`
