package app

import (
	"net/http"
	"net/http/pprof"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/porteira/porteira/internal/flow"
	"github.com/porteira/porteira/internal/loop"
)

// operator is what the operator's listener serves: health, metrics, and the
// inside of the process where that is asked for.
func (a *App) operator() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { status(w, nil) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) { status(w, a.readiness(r.Context())) })
	mux.Handle("GET /metrics", promhttp.HandlerFor(a.metrics(), promhttp.HandlerOpts{}))
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

// metrics gathers what is told about this process: what it is, its requests,
// lanes and duties, and Go's own view of it.
func (a *App) metrics() *prometheus.Registry {
	registry := prometheus.NewRegistry()
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "porteira_info", Help: "What runs here; always 1.",
		ConstLabels: prometheus.Labels{"version": a.opts.Version, "engine": a.store.Engine(), "mode": string(a.cfg.Mode)},
	})
	info.Set(1)
	a.requests = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "porteira_http_request_duration_seconds", Help: "How long requests took, by route and status; 503 was refused or found no database.",
		Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
	}, []string{"method", "route", "status"})
	waiting := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "porteira_checkout_waiting", Help: "Payers' pages that wait for news of their order.",
	}, func() float64 { return float64(a.hub.Waiting()) })
	registry.MustRegister(info, waiting, a.requests, lanes{a.flow}, duties{a.loops}, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return registry
}

// observe counts an answer.
func (a *App) observe(method, path string, status int, took time.Duration) {
	a.requests.WithLabelValues(method, path, strconv.Itoa(status)).Observe(took.Seconds())
}

// lanes tells how the lanes that commit do, when it is asked.
type lanes struct{ flow *flow.Flow }

var (
	laneWaiting = prometheus.NewDesc("porteira_lane_waiting", "Requests and duties that wait to be committed.", []string{"lane"}, nil)
	laneBatch   = prometheus.NewDesc("porteira_lane_batch_seconds", "How long the lane's batches take to be committed, lately.", []string{"lane"}, nil)
)

// Describe implements [prometheus.Collector].
func (lanes) Describe(out chan<- *prometheus.Desc) {
	out <- laneWaiting
	out <- laneBatch
}

// Collect implements [prometheus.Collector].
func (l lanes) Collect(out chan<- prometheus.Metric) {
	for i, load := range l.flow.Load() {
		lane := strconv.Itoa(i)
		out <- prometheus.MustNewConstMetric(laneWaiting, prometheus.GaugeValue, float64(load.Waiting), lane)
		out <- prometheus.MustNewConstMetric(laneBatch, prometheus.GaugeValue, load.Batch.Seconds(), lane)
	}
}

// duties tells how the loops do, when it is asked.
type duties struct{ loops *loop.Group }

// dutyMetrics are what is told of each duty.
var dutyMetrics = []struct {
	description *prometheus.Desc
	kind        prometheus.ValueType
	value       func(loop.Stats) int64
}{
	{dutyMetric("runs_total", "How often a duty looked for work."), prometheus.CounterValue, func(s loop.Stats) int64 { return s.Runs }},
	{dutyMetric("did_total", "How much work a duty took in hand."), prometheus.CounterValue, func(s loop.Stats) int64 { return s.Did }},
	{dutyMetric("errors_total", "How often a duty failed."), prometheus.CounterValue, func(s loop.Stats) int64 { return s.Errors }},
	{dutyMetric("failures", "How often in a row a duty has failed; 0 when all is well."), prometheus.GaugeValue, func(s loop.Stats) int64 { return int64(s.Failures) }},
}

func dutyMetric(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("porteira_loop_"+name, help, []string{"loop"}, nil)
}

// Describe implements [prometheus.Collector].
func (d duties) Describe(out chan<- *prometheus.Desc) {
	for i := range dutyMetrics {
		out <- dutyMetrics[i].description
	}
}

// Collect implements [prometheus.Collector].
func (d duties) Collect(out chan<- prometheus.Metric) {
	for _, l := range d.loops.Loops() {
		stats := l.Stats()
		for i := range dutyMetrics {
			m := &dutyMetrics[i]
			out <- prometheus.MustNewConstMetric(m.description, m.kind, float64(m.value(stats)), l.Name())
		}
	}
}
