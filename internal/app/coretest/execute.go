package coretest

// Execute runs SQL statements on the database, bypassing the gateway.
func (g *Gateway) Execute(statements ...string) {
	g.T.Helper()
	d := g.connect()
	for _, text := range statements {
		_, err := d.ExecContext(g.T.Context(), text)
		g.Must(err)
	}
}
