package expr

import (
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"agentsite/device"
)

// rounds is how often a random test is repeated.
func rounds(t *testing.T) int {
	switch {
	case os.Getenv("SOAK") != "":
		return 1_000_000
	case testing.Short():
		return 1000
	}
	return 10_000
}

func (g *generator) condition() (string, boolean) {
	g.left = 4 + g.IntN(16)
	return g.or()
}

func truth(b *bool) Truth {
	switch {
	case b == nil:
		return Unknown
	case *b:
		return True
	}
	return False
}

// TestReference compares evaluations with an interpreter that shares no code with the package,
// and Cause with the result.
func TestReference(t *testing.T) {
	r := rand.New(rand.NewPCG(1, rand.Uint64()))
	g := &generator{Rand: r}
	var seen [3]int
	for range rounds(t) {
		text, mean := g.condition()
		p, err := compile(text, lookup)
		if err != nil {
			if strings.Contains(err.Error(), "split it") { // too large
				continue
			}
			t.Fatalf("%s\n%v", text, err)
		}
		for range 2 {
			w := randomWorld(r)
			want := truth(mean(w))
			got, _ := p.Eval(w.of(p))
			seen[want]++
			if got != want {
				t.Fatalf("%s\nis %v, want %v in %+v", text, got, want, w)
			}
			if cause := p.Cause(w.of(p)); (cause != "") != (want == Unknown) {
				t.Fatalf("%s\nis %v because of %q", text, want, cause)
			}
		}
	}
	for truth, n := range seen {
		if n < rounds(t)/10 {
			t.Errorf("only %d evaluations are %v", n, Truth(truth))
		}
	}
}

// TestNext: while no reading comes, the result does not change before next, and never if next is 0.
func TestNext(t *testing.T) {
	r := rand.New(rand.NewPCG(2, rand.Uint64()))
	g := &generator{Rand: r}
	far, changed := 0, 0
	for range rounds(t) {
		text, _ := g.condition()
		p, err := compile(text, lookup)
		if err != nil {
			continue
		}
		w := randomWorld(r)
		was, next := p.Eval(w.of(p))
		until := next
		switch next {
		case 0:
			until = 50 * time.Hour
		case minNext, time.Second: // arithmetic, within which the result may change
			continue
		}
		for i := range 6 {
			w.passed = time.Duration(r.Int64N(int64(until)))
			if i == 0 {
				w.passed = until - 1
			}
			if is, _ := p.Eval(w.of(p)); is != was {
				t.Fatalf("%s\nwas %v at %v, next %v, and is %v after %v, in %+v", text, was, w.t, next, is, w.passed, w)
			}
		}
		if next > time.Minute {
			far++
			w.passed = next
			if is, _ := p.Eval(w.of(p)); is != was {
				changed++
			}
		}
	}
	if far < rounds(t)/50 || changed < far/100 {
		t.Errorf("next was above 1m in %d cases, and right to the nanosecond in %d", far, changed)
	}
}

// TestSense: a reading that is none to which Sense says a result is sensitive changes neither it nor next.
func TestSense(t *testing.T) {
	r := rand.New(rand.NewPCG(3, rand.Uint64()))
	g := &generator{Rand: r}
	values, times := 0, 0
	for range rounds(t) {
		text, _ := g.condition()
		p, err := compile(text, lookup)
		if err != nil {
			continue
		}
		w := randomWorld(r)
		for i, address := range p.Points() {
			sense, was := p.Sense(i), w.sample(address)
			if was.age < 0 {
				continue
			}
			truth, next := p.Eval(w.of(p))
			is := was
			if !sense.Time {
				is.age = time.Duration(r.IntN(900)) * time.Second
				times++
			}
			if was.value.Type() == device.TypeNumber && !sense.Time && !sense.Value {
				low, high := was.value.Number()-3, was.value.Number()+3
				for _, b := range sense.Bounds {
					if b <= was.value.Number() {
						low = max(low, b)
					}
					if b >= was.value.Number() {
						high = min(high, b)
					}
				}
				if n := low + r.Float64()*(high-low); low < n && n < high {
					is.value = device.Number(n)
					values++
				}
			}
			w.samples[address] = is
			if now, later := p.Eval(w.of(p)); now != truth || later != next {
				t.Fatalf("%s\nis %v for %v with %v of %s, and %v for %v with %v", text, truth, next, was, address, now, later, is)
			}
			w.samples[address] = was
		}
	}
	if values < rounds(t)/50 || times < rounds(t)/2 {
		t.Errorf("%d values and %d times were other ones", values, times)
	}
}
