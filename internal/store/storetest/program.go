package storetest

// ErrNoPostgres means that this machine has no PostgreSQL to start.
var ErrNoPostgres = errNoPostgres

// StartServer starts a server for a program that is no test, with settings as
// PostgresServer takes them. The caller closes it; it ends with its program all
// the same.
func StartServer(settings ...string) (*Server, error) { return startServer(settings...) }

// Close stops the server and removes its folder.
func (s *Server) Close() { s.close() }
