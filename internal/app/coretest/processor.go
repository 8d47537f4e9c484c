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
		registry := maps.Clone(o.Processors.(processor.Registry))
		registry[name] = p
		o.Processors = registry
	})
}

// NoProcessor restarts the process without a processor, as one that cannot open it.
func (g *Gateway) NoProcessor(name string) {
	g.T.Helper()
	g.Restart(func(o *app.CoreOptions) {
		registry := maps.Clone(o.Processors.(processor.Registry))
		delete(registry, name)
		o.Processors = registry
	})
}

// Database is the path or the URL of the gateway's database.
func (g *Gateway) Database() string { return g.database.Database }
