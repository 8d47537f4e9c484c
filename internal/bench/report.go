package bench

import (
	"math"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"time"
)

// Report is the result of a run. Figures that this machine cannot measure are absent.
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
	// Unsent is the number of requests of an open loop that were due but found no free
	// connection within the measured time: their latencies are not counted.
	Unsent int64 `json:"unsent"`

	Gateway   Resources `json:"gateway"`
	Generator Resources `json:"generator"`
	// Lag is the delay of requests of an open loop on a free connection: the part of the
	// latencies that this program causes.
	Lag *Latency `json:"lagMicros,omitempty"`

	Check Check    `json:"check"`
	Notes []string `json:"notes"`

	histogram *histogram // of the first series
}

// Series is the result of one kind of request or event.
type Series struct {
	Name      string            `json:"name"`
	Count     int64             `json:"count"`     // successes
	PerSecond float64           `json:"perSecond"` // successes that ended within the measured time
	Latency   Latency           `json:"latencyMicros"`
	Errors    map[string]int64  `json:"errors"`                  // by status; "connection" is no answer
	Rejection *Latency          `json:"refusalMicros,omitempty"` // of answers with 503
	Samples   map[string]string `json:"samples,omitempty"`       // of the errors' answers
}

// Resources are the resources that a process used during the measured time.
type Resources struct {
	CPUSeconds      *float64 `json:"cpuSeconds,omitempty"`
	CPUMicros       *float64 `json:"cpuMicrosPerOperation,omitempty"`
	PeakMemoryBytes *int64   `json:"peakMemoryBytes,omitempty"` // since it began
	WrittenBytes    *int64   `json:"writtenBytes,omitempty"`
	WrittenPer      *float64 `json:"writtenBytesPerOperation,omitempty"`
	// WrittenBy is the writer of those bytes: the gateway's process, or the database's
	// write-ahead log.
	WrittenBy string `json:"writtenBy,omitempty"`
}

func selfUsage() usage { return usageOf(os.Getpid()) }

// report returns the report of the run.
func (r *run) report(found *Check) *Report {
	list := r.workload.series()
	v := &Report{
		Mode: r.Mode, Engine: r.target.engine, Loop: "closed", Concurrency: r.Concurrency, Rate: r.Rate, Merchants: r.Merchants,
		WarmupSeconds: r.Warmup.Seconds(), Seconds: round(r.elapsed.Seconds(), 3), Seed: r.Seed,
		Machine: runtime.GOOS + "/" + runtime.GOARCH, CPUs: runtime.NumCPU(), Check: *found, Unsent: r.schedule.unsent.Load(), Notes: append([]string{}, r.notes...),
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
	n := list[0].completedCount()
	v.Gateway = resources(r.stopped.since(r.started), n)
	v.Generator = resources(r.generator, n)
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
		refusal := s.rejections.summary()
		v.Rejection = &refusal
	}
	if elapsed > 0 {
		v.PerSecond = round(float64(s.completed)/elapsed.Seconds(), 1)
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

// per divides sum by n; nil if n is 0.
func per(sum float64, n int64) *float64 {
	if n == 0 {
		return nil
	}
	v := round(sum/float64(n), 1)
	return &v
}

// round rounds to digits after the decimal point.
func round(v float64, digits int) float64 {
	unit := math.Pow10(digits)
	return math.Round(v*unit) / unit
}
