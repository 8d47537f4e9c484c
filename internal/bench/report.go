package bench

import (
	"math"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"time"
)

// Report is what a run measured. Figures that this machine does not tell are
// absent.
type Report struct {
	Mode   Mode   `json:"mode"`
	Engine string `json:"engine"` // sqlite, postgres or unknown
	Loop   string `json:"loop"`   // closed or open

	Concurrency   int     `json:"concurrency"`
	Rate          int     `json:"rate,omitempty"` // requests per second, of an open loop
	Merchants     int     `json:"merchants"`
	WarmupSeconds float64 `json:"warmupSeconds"`
	Seconds       float64 `json:"seconds"` // measured
	Seed          uint64  `json:"seed"`
	Machine       string  `json:"machine"`
	CPUs          int     `json:"cpus"`

	// Throughput is the first series's, per second.
	Throughput float64  `json:"throughput"`
	Series     []Series `json:"series"`
	// Unsent is how many requests of an open loop were due, and had no free
	// connection before the measured time was over: their latencies are in no
	// figure.
	Unsent int64 `json:"unsent"`

	Gateway   Resources `json:"gateway"`
	Generator Resources `json:"generator"`
	// Lag is how late requests of an open loop left a free connection: what of
	// the latencies is this program's own.
	Lag *Latency `json:"lagMicros,omitempty"`

	Check Check    `json:"check"`
	Notes []string `json:"notes"`

	histogram *histogram // of the first series
}

// Series is what happened of one kind.
type Series struct {
	Name      string            `json:"name"`
	Count     int64             `json:"count"`     // that went well
	PerSecond float64           `json:"perSecond"` // that ended well within the measured time
	Latency   Latency           `json:"latencyMicros"`
	Errors    map[string]int64  `json:"errors"`                  // by status; "connection" is no answer
	Refusal   *Latency          `json:"refusalMicros,omitempty"` // of answers with 503: load that the gateway did not take on
	Samples   map[string]string `json:"samples,omitempty"`       // of the errors' answers
}

// Resources are what a process took during the measured time.
type Resources struct {
	CPUSeconds      *float64 `json:"cpuSeconds,omitempty"`
	CPUMicros       *float64 `json:"cpuMicrosPerOperation,omitempty"`
	PeakMemoryBytes *int64   `json:"peakMemoryBytes,omitempty"` // since it began
	WrittenBytes    *int64   `json:"writtenBytes,omitempty"`
	WrittenPer      *float64 `json:"writtenBytesPerOperation,omitempty"`
	// WrittenBy says whose bytes those are: the gateway's process, or the
	// database's write-ahead log.
	WrittenBy string `json:"writtenBy,omitempty"`
}

func selfUsage() usage { return usageOf(os.Getpid()) }

// report puts together what was measured.
func (r *run) report(found *Check) *Report {
	list := r.plan.list()
	v := &Report{
		Mode: r.Mode, Engine: r.target.engine, Loop: "closed", Concurrency: r.Concurrency, Rate: r.Rate, Merchants: r.Merchants,
		WarmupSeconds: r.Warmup.Seconds(), Seconds: round(r.elapsed.Seconds(), 3), Seed: r.Seed,
		Machine: runtime.GOOS + "/" + runtime.GOARCH, CPUs: runtime.NumCPU(), Check: *found, Unsent: r.pace.unsent.Load(), Notes: append([]string{}, r.notes...),
		histogram: list[0].latencies,
	}
	for _, s := range list {
		v.Series = append(v.Series, s.view(r.elapsed))
	}
	v.Throughput = v.Series[0].PerSecond
	if r.Rate > 0 {
		v.Loop = "open"
		lag := r.lag.summary()
		v.Lag = &lag
	}
	n := list[0].ended()
	v.Gateway = resources(r.stopped.since(r.started), n)
	v.Generator = resources(r.own, n)
	v.Generator.WrittenBytes, v.Generator.WrittenPer = nil, nil
	v.Gateway.WrittenBytes, v.Gateway.WrittenPer = nil, nil
	if r.written >= 0 {
		v.Gateway.WrittenBytes, v.Gateway.WrittenPer, v.Gateway.WrittenBy = &r.written, per(float64(r.written), n), r.writtenBy
	}
	return v
}

func (s *series) view(elapsed time.Duration) Series {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := Series{Name: s.name, Count: s.count, Latency: s.latencies.summary(), Errors: s.errors, Samples: s.samples}
	if s.errors[strconv.Itoa(http.StatusServiceUnavailable)] > 0 {
		refusal := s.refusals.summary()
		v.Refusal = &refusal
	}
	if elapsed > 0 {
		v.PerSecond = round(float64(s.within)/elapsed.Seconds(), 1)
	}
	return v
}

func resources(u usage, n int64) Resources {
	var v Resources
	if u.cpu >= 0 {
		seconds := round(u.cpu.Seconds(), 2)
		v.CPUSeconds, v.CPUMicros = &seconds, per(float64(u.cpu.Microseconds()), n)
	}
	if u.peak >= 0 {
		v.PeakMemoryBytes = &u.peak
	}
	return v
}

// per divides among n operations; nil where there was none.
func per(sum float64, n int64) *float64 {
	if n == 0 {
		return nil
	}
	v := round(sum/float64(n), 1)
	return &v
}

// round keeps so many digits behind the point.
func round(v float64, digits int) float64 {
	unit := math.Pow10(digits)
	return math.Round(v*unit) / unit
}
