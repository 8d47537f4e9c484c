package coretest

import (
	"maps"

	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/processor"
)

// Processor restarts the process with one more processor.
func (g *Gateway) Processor(name string, p processor.Processor) {
	g.T.Helper()
	g.Restart(func(o *app.CoreOptions) {
		o.Processors = maps.Clone(o.Processors)
		o.Processors[name] = p
	})
}

// Database is the path or the URL of the gateway's database.
func (g *Gateway) Database() string { return g.database.Database }
