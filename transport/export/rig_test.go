package export

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/device"

	"github.com/golang/snappy"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/encoding/protowire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var self = agents.Principal{ID: "export:export"}

// rig is a site with readings, a store, and the agent between them.
type rig struct {
	*testing.T
	agents.Site
	began time.Time

	mu      sync.Mutex
	points  []agents.Point
	changes map[string][]agents.Event // of points that are no measurements
	ahead   time.Duration             // of the site's clock
	unknown bool                      // it is not set
	broken  string                    // a point whose history cannot be read
	file    []byte
	crashed bool // nothing is stored
	answer  func(r *http.Request, all []got) (*http.Response, error)
	got     map[string][]sample // what the store took, by the labels
	asked   []int               // samples in each request
	when    []time.Time         // each request came
	agent   *Agent
}

// got is a sample in words.
type got struct {
	labels string
	sample
}

func newRig(t *testing.T, names ...string) *rig {
	r := &rig{T: t, began: time.Now(), got: make(map[string][]sample), changes: make(map[string][]agents.Event)}
	for _, name := range names {
		r.points = append(r.points, agents.Point{Point: name, Kind: device.KindMeasurement, Unit: "Cel"})
	}
	return r
}

// run runs the agent until stop is called.
func (r *rig) run() (stop func()) {
	w := World{
		Site: "garden", Version: "9.9", Raw: 7 * 24 * time.Hour, Claimed: func() bool { return true },
		Secret: func(string) (string, error) { return "secret", nil },
		Now: func() (time.Time, bool) {
			r.mu.Lock()
			defer r.mu.Unlock()
			return time.Now().Add(r.ahead), !r.unknown
		},
		Load: func() ([]byte, error) { return r.file, nil },
		Store: func(text []byte) error {
			if !r.crashed {
				r.file = slices.Clone(text)
			}
			return nil
		},
		through: r,
	}
	r.agent = Kind(w).New().(*Agent)
	r.agent.RemoteWrite.URL = "https://metrics.example.org/api/v1/write"
	r.agent.RemoteWrite.KeyFile = "key"
	if _, err := r.agent.Define(); err != nil {
		r.Fatal(err)
	}
	ctx, cancel := context.WithCancel(r.Context())
	done := make(chan error)
	go func() { done <- r.agent.Run(ctx, self, r) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			r.Error(err)
		}
	}
}

func (r *rig) Points(_ context.Context, p agents.Principal, _ agents.SiteRequest) (agents.PointList, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p != self {
		return agents.PointList{}, errors.New("another principal")
	}
	return agents.PointList{Points: slices.Clone(r.points)}, nil
}

// value returns the value of each measurement at a time.
func value(at time.Time) float64 { return float64(at.Unix()%1000) / 10 }

// every is the time between two readings.
const every = 10 * time.Second

// History answers as a node does: a measurement has a reading each ten seconds, also from before the test.
func (r *rig) History(_ context.Context, _ agents.Principal, q agents.HistoryRequest) (h agents.History, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	from, _ := time.Parse(time.RFC3339, q.From)
	to, _ := time.Parse(time.RFC3339, q.To)
	const form = "2006-01-02T15:04:05.000Z"
	if q.Point == r.broken {
		return h, device.Faultf(device.Internal, "damaged")
	}
	if all, ok := r.changes[q.Point]; ok {
		var before *agents.Event
		for _, e := range all {
			at, _ := time.Parse(time.RFC3339, e.Time)
			if at.Before(from) {
				before = &e
			} else if at.Before(to) {
				h.Changes = append(h.Changes, e)
			}
		}
		if before != nil && !strings.HasPrefix(q.Point, "button") {
			h.Changes = slices.Insert(h.Changes, 0, *before)
		}
		if n := len(h.Changes); n > 500 {
			h.Changes, h.Cut = h.Changes[n-500:], true
		}
		return h, nil
	}
	step := time.Second
	if to.Sub(from).Seconds() > *q.Steps {
		step = time.Minute
	}
	h.Length = step.Seconds()
	for at := from.Truncate(max(step, every)); at.Before(to); at = at.Add(max(step, every)) {
		if at.Before(from.Truncate(step)) || at.After(time.Now().Add(r.ahead)) {
			continue
		}
		h.Steps = append(h.Steps, agents.Step{Time: at.UTC().Format(form), Mean: value(at)})
	}
	return h, nil
}

// RoundTrip is the store.
func (r *rig) RoundTrip(q *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(q.Body)
	if err != nil {
		return nil, err
	}
	all := decode(r.T, body)
	r.mu.Lock()
	r.asked, r.when = append(r.asked, len(all)), append(r.when, time.Now())
	answer := r.answer
	r.mu.Unlock()
	if answer != nil {
		if res, err := answer(q, all); res != nil || err != nil {
			return res, err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range all {
		r.got[s.labels] = append(r.got[s.labels], s.sample)
	}
	return status(http.StatusNoContent), nil
}

func status(code int) *http.Response {
	return &http.Response{StatusCode: code, Header: make(http.Header), Body: http.NoBody}
}

// say sets what the store answers; nil has it take all.
func (r *rig) say(answer func(*http.Request, []got) (*http.Response, error)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = answer
}

// decode reads a request by the messages of the specification.
func decode(t *testing.T, body []byte) (all []got) {
	b, err := snappy.Decode(nil, body)
	if err != nil {
		t.Fatal(err)
	}
	fields(t, b, func(n protowire.Number, _ uint64, series []byte) {
		if n != 1 {
			t.Fatalf("field %d of the request", n)
		}
		labels, last := "", ""
		fields(t, series, func(n protowire.Number, _ uint64, b []byte) {
			switch n {
			case 1:
				var l [3]string
				fields(t, b, func(n protowire.Number, _ uint64, b []byte) { l[n] = string(b) })
				if l[1] <= last || l[2] == "" {
					t.Errorf("label %q=%q after %q", l[1], l[2], last)
				}
				last = l[1]
				labels += fmt.Sprintf("%s=%s ", l[1], l[2])
			case 2:
				var s sample
				fields(t, b, func(n protowire.Number, v uint64, _ []byte) {
					if n == 1 {
						s.value = math.Float64frombits(v)
					} else {
						s.at = int64(v)
					}
				})
				all = append(all, got{labels, s})
			default:
				t.Fatalf("field %d of a series", n)
			}
		})
	})
	return all
}

func fields(t *testing.T, b []byte, take func(protowire.Number, uint64, []byte)) {
	for len(b) > 0 {
		n, typ, size := protowire.ConsumeTag(b)
		if b = b[max(size, 0):]; size < 0 {
			t.Fatal("a tag")
		}
		var v uint64
		var text []byte
		switch typ {
		case protowire.BytesType:
			text, size = protowire.ConsumeBytes(b)
		case protowire.Fixed64Type:
			v, size = protowire.ConsumeFixed64(b)
		default:
			v, size = protowire.ConsumeVarint(b)
		}
		if size < 0 {
			t.Fatal("a field")
		}
		take(n, v, text)
		b = b[size:]
	}
}

// temperature are the labels of a measurement.
func temperature(point string) string {
	return "__name__=agentsite_reading point=" + point + " site=garden unit=Cel "
}

// check compares what the store has of a measurement with the readings of a time. It has up to twice as many if some
// may have come again.
func (r *rig) check(point string, from, to time.Time, again int) {
	r.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	have := make(map[int64]float64)
	twice := 0
	last := int64(0)
	for _, s := range r.got[temperature(point)] {
		if _, ok := have[s.at]; ok {
			twice++
		} else if s.at <= last {
			r.Errorf("%s: %d came after %d", point, s.at, last)
		}
		have[s.at], last = s.value, max(last, s.at)
	}
	if twice > again {
		r.Errorf("%s: %d samples came again, want at most %d", point, twice, again)
	}
	missing := 0
	for at := from.Truncate(every).Add(every); at.Before(to); at = at.Add(every) {
		if v, ok := have[at.Add(time.Second).UnixMilli()]; !ok || v != value(at) {
			missing++
		}
	}
	if missing > 0 {
		r.Errorf("%s: %d samples are missing from %v to %v; there are %d", point, missing, from, to, len(have))
	}
}

// sleep waits, and then for what happens at that time.
func (r *rig) sleep(d time.Duration) {
	func() { r.mu.Lock(); defer r.mu.Unlock() }() // what the test read is before what is written next
	time.Sleep(d)
	synctest.Wait()
}
