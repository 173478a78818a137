package things

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/device"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"
)

// disk holds the text that a store writes.
type disk struct {
	text   []byte
	writes int
	full   bool
}

func (d *disk) write(b []byte) error {
	if d.full {
		return errors.New("no space left on device")
	}
	d.text, d.writes = bytes.Clone(b), d.writes+1
	return nil
}

func (d *disk) open(t *testing.T, sure bool) *Store {
	t.Helper()
	s := Open(Options{File: d.text, Write: d.write, Own: "did:key:me/things/", Now: func() (time.Time, bool) { return time.Now(), sure }})
	t.Cleanup(s.Close)
	return s
}

func td(id, more string) jsontext.Value {
	return jsontext.Value(fmt.Sprintf(`{"@context":"https://www.w3.org/2022/wot/td/v1.1","id":%q,"title":"T","security":"n","securityDefinitions":{"n":{"scheme":"nosec"}}%s}`, id, more))
}

var (
	ann   = Caller{ID: "ann", Account: "ann"}
	bob   = Caller{ID: "bob", Account: "ann"} // by the same grant
	owner = Caller{ID: "owner", Account: "owner", Owner: true}
)

func kindOf(err error) device.FaultKind {
	var invalid Invalid
	switch {
	case err == nil:
		return ""
	case errors.As(err, &invalid):
		return device.Invalid
	}
	return device.AsFault(err).Kind
}

func expect(t *testing.T, err error, want device.FaultKind) {
	t.Helper()
	if kindOf(err) != want {
		t.Errorf("%v, want %q", err, want)
	}
}

func put(t *testing.T, s *Store, c Caller, id, more string, want device.FaultKind) {
	t.Helper()
	_, err := s.Put(c, id, td(id, more))
	expect(t, err, want)
}

// TestStore: an acknowledged description is stored, and a refresh writes nothing.
func TestStore(t *testing.T) {
	var d disk
	s := d.open(t, true)
	put(t, s, ann, "urn:a", `,"registration":{"ttl":60}`, "")
	put(t, s, ann, "urn:a", `,"registration":{"ttl":60}`, "")
	expect(t, s.Patch(ann, "urn:a", jsontext.Value(`{}`)), "")
	if d.writes != 1 {
		t.Errorf("%d writes", d.writes)
	}
	put(t, s, bob, "urn:b", "", "")
	put(t, s, bob, "urn:a", "", device.Denied)
	expect(t, s.Delete(ann, "urn:b"), device.Invalid) // which ann does not see
	put(t, s, owner, "urn:b", `,"description":"x"`, "")
	put(t, s, owner, "did:key:me/things/site:x", "", device.Denied)
	again := d.open(t, true)
	if all := again.List(owner); len(all) != 2 || !strings.Contains(string(all[0].Text), `"ttl":60`) || !strings.Contains(string(all[1].Text), `"description":"x"`) {
		t.Errorf("%s", all)
	}
	if all := again.List(bob); len(all) != 1 || all[0].ID != "urn:b" {
		t.Errorf("bob sees %s", all)
	}
	d.full = true
	put(t, s, ann, "urn:c", "", device.Unavailable)
	expect(t, s.Delete(ann, "urn:a"), device.Unavailable)
	if all := s.List(owner); len(all) != 2 {
		t.Errorf("%s", all)
	}
}

// TestDamage: a damaged file is read as empty, and stays as it is.
func TestDamage(t *testing.T) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	for _, text := range []string{"", "{", `{"version":2,"things":[]}`, `{"version":1,"things":[null]}`, `{"version":1,"things":[{"id":"urn:a"}]}`, `{"version":1,"thing":[]}`} {
		d := disk{text: []byte(text)}
		s := d.open(t, true)
		put(t, s, owner, "urn:a", "", device.Unavailable)
		expect(t, s.Delete(owner, "urn:a"), device.Unavailable)
		if d.writes != 0 || len(s.List(owner)) != 0 {
			t.Errorf("%q: %d writes", text, d.writes)
		}
	}
}

// TestExpiry: a registration ends by itself, also where the clock is not set, and begins anew with
// the site.
func TestExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d disk
		s := d.open(t, false)
		put(t, s, ann, "urn:ttl", `,"registration":{"ttl":60,"expires":"1999-01-01T00:00:00Z"}`, "")
		put(t, s, ann, "urn:when", fmt.Sprintf(`,"registration":{"expires":%q}`, time.Now().Add(30*time.Second).Format(time.RFC3339)), "")
		time.Sleep(59 * time.Second)
		expect(t, s.Patch(ann, "urn:ttl", jsontext.Value(`{}`)), "")
		time.Sleep(59 * time.Second)
		if all := s.List(ann); len(all) != 2 { // the other one ends once the time is known
			t.Errorf("%s", all)
		}
		s.Close()
		again := d.open(t, true)
		if all := again.List(ann); len(all) != 1 || all[0].ID != "urn:ttl" {
			t.Errorf("%s", all)
		}
		again.mu.Lock()
		before := d.writes
		again.mu.Unlock()
		time.Sleep(time.Minute)
		synctest.Wait()
		again.mu.Lock()
		defer again.mu.Unlock()
		if len(again.all) != 0 || d.writes != before+1 { // by the timer
			t.Errorf("%d are left, %d writes", len(again.all), d.writes-before)
		}
	})
}

// TestBounds: one grant does not take all, and what owners have is reserved.
func TestBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d disk
		s := d.open(t, true)
		fill := func(c Caller, most int) (n int) {
			for ; n < most; n++ {
				_, err := s.Put(c, fmt.Sprintf("urn:%s:%d", c.ID, n), td(fmt.Sprintf("urn:%s:%d", c.ID, n), ""))
				if kindOf(err) == device.Busy {
					time.Sleep(time.Hour) // the rate of writes
					n--
				} else if err != nil {
					expect(t, err, device.Unavailable)
					return n
				}
			}
			return n
		}
		if n := fill(ann, 300); n != maxEach {
			t.Errorf("%d by one", n)
		}
		if n := fill(bob, 300); n != 0 {
			t.Errorf("%d more by the same grant", n)
		}
		for i := range 4 {
			fill(Caller{ID: fmt.Sprint("other", i), Account: fmt.Sprint(i)}, 300)
		}
		if n := len(s.List(owner)); n != maxThings*3/4 {
			t.Errorf("%d by all but owners", n)
		}
		if fill(owner, 300); len(s.List(owner)) != maxThings {
			t.Errorf("%d in all", len(s.List(owner)))
		}
		expect(t, s.Delete(owner, "urn:owner:0"), "")
		put(t, s, owner, "urn:large", `,"description":"`+strings.Repeat("x", maxThing)+`"`, device.Invalid)
		if len(d.text) > MaxFile {
			t.Errorf("%d bytes", len(d.text))
		}
	})
}

// TestWatch: a watcher hears of what it may see, of what it missed, and of what happens from its begin on.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d disk
		s := d.open(t, true)
		put(t, s, ann, "urn:a", "", "")
		ctx, end := context.WithCancel(t.Context())
		var mu sync.Mutex
		heard := make(map[string][]string)
		watch := func(c Caller, after string) {
			s.Watch(ctx, after, func() { put(t, s, c, "urn:"+c.ID, "", "") }, func() (Caller, error) { return c, nil }, func(e Event) error {
				mu.Lock()
				defer mu.Unlock()
				heard[c.ID] = append(heard[c.ID], e.Type+" "+e.Thing)
				return nil
			})
		}
		go watch(ann, s.events.start+"-0")
		synctest.Wait()
		go watch(owner, "elsewhere-0")
		synctest.Wait()
		go watch(Caller{ID: "carl"}, "")
		synctest.Wait()
		put(t, s, bob, "urn:b", "", "")
		expect(t, s.Delete(ann, "urn:a"), "")
		synctest.Wait()
		end()
		synctest.Wait()
		if got := fmt.Sprint(heard); got != "map[ann:[thing_created urn:a thing_created urn:ann thing_deleted urn:a] carl:[thing_created urn:carl] owner:[thing_created urn:owner thing_created urn:carl thing_created urn:b thing_deleted urn:a]]" {
			t.Error(got)
		}
	})
}

// value draws a JSON value, and patch a value that may have nulls at any depth.
func value(depth int) *rapid.Generator[any] {
	scalar := rapid.OneOf(rapid.Just[any](nil), rapid.Map(rapid.Bool(), func(b bool) any { return b }), rapid.Map(rapid.IntRange(-9, 9), func(n int) any { return float64(n) }), rapid.Map(rapid.StringN(0, 2, 8), func(s string) any { return s }))
	if depth == 0 {
		return scalar
	}
	return rapid.OneOf(scalar,
		rapid.Map(rapid.MapOfN(rapid.StringMatching("[abc]"), value(depth-1), 0, 3), func(m map[string]any) any { return m }),
		rapid.Map(rapid.SliceOfN(value(depth-1), 0, 2), func(l []any) any { return l }))
}

// mergeValues is the pseudocode of RFC 7396, section 2.
func mergeValues(target, patch any) any {
	p, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	t, ok := target.(map[string]any)
	if !ok {
		t = make(map[string]any)
	}
	for name, v := range p {
		if v == nil {
			delete(t, name)
		} else {
			t[name] = mergeValues(t[name], v)
		}
	}
	return t
}

func TestMergeModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		target, patch := value(3).Draw(t, "target"), value(3).Draw(t, "patch")
		got, err := merge(encoded(target), encoded(patch))
		if err != nil {
			t.Fatal(err)
		}
		want, err := json.Marshal(mergeValues(target, patch), json.Deterministic(true))
		if err != nil {
			t.Fatal(err)
		}
		if err := got.Canonicalize(); err != nil {
			t.Fatal(err)
		}
		if string(got) != string(canonical(t, want)) {
			t.Fatalf("%s with %s: %s, want %s", encoded(target), encoded(patch), got, want)
		}
	})
}

func canonical(t *rapid.T, v jsontext.Value) jsontext.Value {
	if err := v.Canonicalize(); err != nil {
		t.Fatal(err)
	}
	return v
}

// TestMerge has the examples of RFC 7396, appendix A.
func TestMerge(t *testing.T) {
	for _, c := range [][3]string{
		{`{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`}, {`{"a":"b"}`, `{"b":"c"}`, `{"a":"b","b":"c"}`}, {`{"a":"b"}`, `{"a":null}`, `{}`},
		{`{"a":"b","b":"c"}`, `{"a":null}`, `{"b":"c"}`}, {`{"a":["b"]}`, `{"a":"c"}`, `{"a":"c"}`}, {`{"a":"c"}`, `{"a":["b"]}`, `{"a":["b"]}`},
		{`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"a":{"b":"d"}}`}, {`{"a":[{"b":"c"}]}`, `{"a":[1]}`, `{"a":[1]}`}, {`["a","b"]`, `["c","d"]`, `["c","d"]`},
		{`{"a":"b"}`, `["c"]`, `["c"]`}, {`{"a":"foo"}`, `null`, `null`}, {`{"a":"foo"}`, `"bar"`, `"bar"`}, {`{"e":null}`, `{"a":1}`, `{"a":1,"e":null}`},
		{`[1,2]`, `{"a":"b","c":null}`, `{"a":"b"}`}, {`{}`, `{"a":{"bb":{"ccc":null}}}`, `{"a":{"bb":{}}}`},
	} {
		if got, err := merge(jsontext.Value(c[0]), jsontext.Value(c[1])); err != nil || string(got) != c[2] {
			t.Errorf("%s with %s: %s %v, want %s", c[0], c[1], got, err, c[2])
		}
	}
}

// FuzzFile: whatever the file has, a store opens, and what it reads it writes again.
func FuzzFile(f *testing.F) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	good, _ := encode([]*entry{{ID: "urn:a", TD: td("urn:a", ""), By: "ann", Account: "ann", TTL: 5}, {ID: "urn:b", TD: td("urn:b", `,"links":[{"href":"x"}]`), By: "ann", Account: "ann"}})
	f.Add(good)
	f.Add([]byte(`{"version":1,"things":[]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		all, err := decode(text)
		if err != nil {
			return
		}
		again, err := encode(all)
		if err != nil {
			t.Fatal(err)
		}
		same, err := decode(again)
		if err != nil || len(same) != len(all) {
			t.Fatalf("%v: %s", err, again)
		}
	})
}

// FuzzPatch: no patch makes a description that is none, or another's.
func FuzzPatch(f *testing.F) {
	f.Add([]byte(`{"title":"x","registration":{"ttl":5}}`))
	f.Add([]byte(`{"@context":["https://www.w3.org/2019/wot/td/v1",{}],"properties":{"a":{"forms":[{"href":"x"}]}}}`))
	f.Fuzz(func(t *testing.T, patch []byte) {
		if !jsontext.Value(patch).IsValid() {
			return
		}
		var d disk
		s := d.open(t, true)
		put(t, s, ann, "urn:a", "", "")
		s.Patch(ann, "urn:a", bytes.TrimSpace(patch))
		all, err := decode(d.text)
		if err != nil || len(all) != 1 || all[0].ID != "urn:a" {
			t.Fatalf("%v: %s", err, d.text)
		}
		if !s.List(ann)[0].Text.IsValid() {
			t.Fatalf("%s", s.List(ann)[0].Text)
		}
	})
}

// TestFairWrites: an account with many changes leaves others their writes, and wears out no card.
func TestFairWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d disk
		s := d.open(t, true)
		begun := time.Now()
		n := 0
		for ; time.Since(begun) < 24*time.Hour; n++ {
			if _, err := s.Put(ann, "urn:a", td("urn:a", fmt.Sprintf(`,"description":"%d"`, n))); kindOf(err) == device.Busy {
				if put(t, s, Caller{ID: "carl", Account: "carl"}, "urn:c", "", ""); n == 0 {
					t.Error("nothing is stored")
				}
				time.Sleep(time.Minute)
			} else if err != nil {
				t.Fatal(err)
			}
		}
		if d.writes > 2000 {
			t.Errorf("%d writes a day", d.writes)
		}
	})
}
