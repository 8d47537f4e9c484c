package app

import (
	"net/http"
	"net/http/pprof"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/worker"
	"github.com/porteira/porteira/internal/write"
)

// operator serves health checks, metrics and, if enabled, profiles.
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
		_, _ = w.Write([]byte(`{"status":"unavailable"}`))
		return
	}
	_, _ = w.Write([]byte(`{"status":"ok"}`))
}

// withMetrics adds the metrics to the API's listener, for gateways without an
// operator's listener. The API has health routes of its own.
func withMetrics(api, operator http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/metrics" {
			operator.ServeHTTP(w, r)
			return
		}
		api.ServeHTTP(w, r)
	})
}

// accountStates counts the accounts of this process by state, for alarms.
type accountStates struct{ states func() map[string]int }

var accountStatesDesc = prometheus.NewDesc("porteira_accounts", "Processor accounts by state; not_open: this process cannot open them; frozen, besides: payouts or refunds wait after a restore; stopped, besides: a case stops payouts; refused, besides: suspended because the processor refuses the credentials.", []string{"state"}, nil)

// Describe implements [prometheus.Collector].
func (accountStates) Describe(to chan<- *prometheus.Desc) { to <- accountStatesDesc }

// Collect implements [prometheus.Collector].
func (c accountStates) Collect(to chan<- prometheus.Metric) {
	for state, n := range c.states() {
		to <- prometheus.MustNewConstMetric(accountStatesDesc, prometheus.GaugeValue, float64(n), state)
	}
}

// certificates are the ends of the accounts' certificates, for alarms.
type certificates struct{ ends func() map[string]time.Time }

var certificateDesc = prometheus.NewDesc("porteira_account_certificate_expiry_timestamp_seconds", "Expiry of the client certificate of a processor account, as Unix time.", []string{"account"}, nil)

// Describe implements [prometheus.Collector].
func (certificates) Describe(to chan<- *prometheus.Desc) { to <- certificateDesc }

// Collect implements [prometheus.Collector].
func (c certificates) Collect(to chan<- prometheus.Metric) {
	for account, end := range c.ends() {
		to <- prometheus.MustNewConstMetric(certificateDesc, prometheus.GaugeValue, float64(end.Unix()), account)
	}
}

// feeds exports how often the accounts' lists could not be read, for alarms.
type feeds struct{ list func() []store.Feed }

var feedFailuresDesc = prometheus.NewDesc("porteira_account_feed_consecutive_failures", "Failed reads in a row of a list of a processor account; 0 if the last one succeeded.", []string{"account", "feed"}, nil)

// Describe implements [prometheus.Collector].
func (feeds) Describe(to chan<- *prometheus.Desc) { to <- feedFailuresDesc }

// Collect implements [prometheus.Collector].
func (c feeds) Collect(to chan<- prometheus.Metric) {
	for _, f := range c.list() {
		to <- prometheus.MustNewConstMetric(feedFailuresDesc, prometheus.GaugeValue, float64(f.Failures), f.Account, f.Feed)
	}
}

// metrics registers the metrics of this process and of the Go runtime.
func (a *App) metrics() *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(accountStates{func() map[string]int { return a.accounts.States(a.core.Node.Frozen) }})
	registry.MustRegister(certificates{a.accounts.CertificateEnds}, feeds{a.accounts.Feeds})
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "porteira_info", Help: "Version, engine and mode; always 1.",
		ConstLabels: prometheus.Labels{"version": a.opts.Version, "engine": a.store.Engine(), "mode": string(a.cfg.Mode)},
	})
	info.Set(1)
	a.requests = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "porteira_http_request_duration_seconds", Help: "Duration of requests, by route and status; 503 means overloaded or database unavailable.",
		Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
	}, []string{"method", "route", "status"})
	waiting := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "porteira_checkout_waiting", Help: "Number of payers' pages waiting for a change of their order.",
	}, func() float64 { return float64(a.hub.Waiting()) })
	registry.MustRegister(info, waiting, a.requests, commits{a.core.Writer}, workers{a.workers}, budgets{a.accounts}, a.newFacts(), a.core.heads, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return registry
}

// observe records the duration of a request.
func (a *App) observe(method, path string, status int, took time.Duration) {
	a.requests.WithLabelValues(method, path, strconv.Itoa(status)).Observe(took.Seconds())
}

// commits exports the load of the group commit.
type commits struct{ writer *write.Writer }

var (
	commitQueue = prometheus.NewDesc("porteira_commit_queue_length", "Operations waiting to be committed.", []string{"lane"}, nil)
	commitBatch = prometheus.NewDesc("porteira_commit_batch_seconds", "Mean duration of recent batches.", []string{"lane"}, nil)
)

// Describe implements [prometheus.Collector].
func (commits) Describe(out chan<- *prometheus.Desc) {
	out <- commitQueue
	out <- commitBatch
}

// Collect implements [prometheus.Collector].
func (c commits) Collect(out chan<- prometheus.Metric) {
	for i, stats := range c.writer.Lanes() {
		lane := strconv.Itoa(i)
		out <- prometheus.MustNewConstMetric(commitQueue, prometheus.GaugeValue, float64(stats.Waiting), lane)
		out <- prometheus.MustNewConstMetric(commitBatch, prometheus.GaugeValue, stats.Batch.Seconds(), lane)
	}
}

// workers exports the counters of the background workers.
type workers struct{ group *worker.Group }

var workerMetrics = []struct {
	description *prometheus.Desc
	kind        prometheus.ValueType
	value       func(worker.Stats) int64
}{
	{workerMetric("runs_total", "Runs of a worker."), prometheus.CounterValue, func(s worker.Stats) int64 { return s.Runs }},
	{workerMetric("items_total", "Items that a worker claimed or completed."), prometheus.CounterValue, func(s worker.Stats) int64 { return s.Did }},
	{workerMetric("errors_total", "Failed runs of a worker."), prometheus.CounterValue, func(s worker.Stats) int64 { return s.Errors }},
	{workerMetric("consecutive_failures", "Failed runs of a worker in a row; 0 if the last one succeeded."), prometheus.GaugeValue, func(s worker.Stats) int64 { return int64(s.Failures) }},
}

func workerMetric(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("porteira_worker_"+name, help, []string{"worker"}, nil)
}

// Describe implements [prometheus.Collector].
func (workers) Describe(out chan<- *prometheus.Desc) {
	for i := range workerMetrics {
		out <- workerMetrics[i].description
	}
}

// Collect implements [prometheus.Collector].
func (w workers) Collect(out chan<- prometheus.Metric) {
	for _, v := range w.group.Workers() {
		stats := v.Stats()
		for i := range workerMetrics {
			m := &workerMetrics[i]
			out <- prometheus.MustNewConstMetric(m.description, m.kind, float64(m.value(stats)), v.Name())
		}
	}
}
