package app

import (
	"fmt"
	"io"
	"net/http"
	"net/http/pprof"
	"runtime"

	"github.com/porteira/porteira/internal/loop"
)

// operator is what the operator's listener serves: health, metrics, and the
// inside of the process where that is asked for.
func (a *App) operator() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { status(w, nil) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) { status(w, a.readiness(r.Context())) })
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		a.writeMetrics(w)
	})
	if a.cfg.Profiling {
		mux.HandleFunc("/debug/pprof/", pprof.Index)
		mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
		mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	}
	return mux
}

// status answers a health check.
func status(w http.ResponseWriter, err error) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = w.Write([]byte(`{"status":"unavailable"}`)) // the cause is the operator's, who has the log
		return
	}
	_, _ = w.Write([]byte(`{"status":"ok"}`))
}

// beside serves the metrics on the API's own listener, as development has one
// only; health is among the API's routes.
func beside(api, operator http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/metrics" {
			operator.ServeHTTP(w, r)
			return
		}
		api.ServeHTTP(w, r)
	})
}

// loopMetrics are what is told of each duty.
var loopMetrics = []struct {
	name, kind, help string
	value            func(loop.Stats) int64
}{
	{"porteira_loop_runs_total", "counter", "How often a duty looked for work.", func(s loop.Stats) int64 { return s.Runs }},
	{"porteira_loop_did_total", "counter", "How much work a duty took in hand.", func(s loop.Stats) int64 { return s.Did }},
	{"porteira_loop_errors_total", "counter", "How often a duty failed.", func(s loop.Stats) int64 { return s.Errors }},
	{"porteira_loop_failures", "gauge", "How often in a row a duty has failed; 0 when all is well.", func(s loop.Stats) int64 { return int64(s.Failures) }},
}

// writeMetrics writes the text form that Prometheus reads (exposition format
// 0.0.4). Who reads it may have gone: nobody is left to tell.
func (a *App) writeMetrics(w io.Writer) {
	metric := func(name, kind, help, labels string, value any) {
		_, _ = fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s %s\n%s%s %v\n", name, help, name, kind, name, labels, value)
	}
	metric("porteira_info", "gauge", "What runs here; always 1.",
		fmt.Sprintf("{version=%q,engine=%q,mode=%q}", a.opts.Version, a.store.Engine(), a.cfg.Mode), 1)
	for _, m := range loopMetrics {
		_, _ = fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s %s\n", m.name, m.help, m.name, m.kind)
		for _, l := range a.loops.Loops() {
			_, _ = fmt.Fprintf(w, "%s{loop=%q} %d\n", m.name, l.Name(), m.value(l.Stats()))
		}
	}
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	metric("go_goroutines", "gauge", "Goroutines that exist.", "", runtime.NumGoroutine())
	metric("go_memstats_heap_inuse_bytes", "gauge", "Bytes in heap spans in use.", "", memory.HeapInuse)
	metric("go_memstats_sys_bytes", "gauge", "Bytes taken from the system.", "", memory.Sys)
	metric("go_gc_cycles_total", "counter", "Garbage collections.", "", memory.NumGC)
}
