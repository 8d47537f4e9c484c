package httpapi

// Route is a row of the table of routes, for tests.
type Route struct{ Method, Path, Scope string }

// Routes is the table of routes.
func Routes() []Route {
	list := make([]Route, len(routes))
	for i, rt := range routes {
		list[i] = Route{rt.method, rt.path, rt.scope}
	}
	return list
}
