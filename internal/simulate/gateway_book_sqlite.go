package simulate

// sqliteLog leaves out of a line what does not apply: a default takes no room.
const sqliteLog = `CREATE TABLE gateway_log (
	seq INTEGER NOT NULL PRIMARY KEY, kind INTEGER NOT NULL, op INTEGER NOT NULL,
	merchant BLOB NOT NULL DEFAULT x'', id BLOB NOT NULL DEFAULT x'', other BLOB NOT NULL DEFAULT x'', data BLOB NOT NULL DEFAULT x'',
	n0 INTEGER NOT NULL DEFAULT 0, n1 INTEGER NOT NULL DEFAULT 0, n2 INTEGER NOT NULL DEFAULT 0, n3 INTEGER NOT NULL DEFAULT 0,
	n4 INTEGER NOT NULL DEFAULT 0, n5 INTEGER NOT NULL DEFAULT 0, n6 INTEGER NOT NULL DEFAULT 0, n7 INTEGER NOT NULL DEFAULT 0,
	t0 TEXT NOT NULL DEFAULT '', t1 TEXT NOT NULL DEFAULT '', t2 TEXT NOT NULL DEFAULT '',
	t3 TEXT NOT NULL DEFAULT '', t4 TEXT NOT NULL DEFAULT '', t5 TEXT NOT NULL DEFAULT '')`

func sqliteTrigger(name, when, table, insertion string) string {
	return "CREATE TRIGGER gateway_log_" + table + "_" + name + " AFTER " + when + " ON " + table + " BEGIN " + insertion + "; END"
}
