package web

import (
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"agentsite/device"
	"agentsite/device/devicetest"
	"agentsite/device/driver"
)

func TestThingDevice(t *testing.T) {
	var f *fake
	devicetest.Options{Level: func(point string) device.Value { return f.has(point) }}.Run(t,
		func(t *testing.T) device.Device {
			f = newFake(t)
			dev, err := driver.Open(t.Context(), f.thing())
			if err != nil {
				t.Fatal(err)
			}
			return dev
		})
}

// TestThingContradicts: a description that is not as the owner wrote is a fault of the point, never another value, and
// nothing is written.
func TestThingContradicts(t *testing.T) {
	for name, change := range map[string][2]string{
		"unit": {"unit:PERCENT", "unit:DEG_C"}, "type": {`"relay":{"type":"boolean"`, `"relay":{"type":"number"`},
		"read-only": {`"relay":{`, `"relay":{"readOnly":true,`}, "write-only": {`"relay":{`,
			`"relay":{"writeOnly":true,`},
		"range": {`"maximum":100`, `"maximum":50`}, "away": {`"relay":{`, `"lamp":{`}, "no form": {`"relay{?for}"`,
			`"coap://127.0.0.1/x"`},
		"other host": {`"relay{?for}"`, `"http://127.0.0.2:1/relay"`}, "other port": {`"/properties/"`,
			`"http://127.0.0.1:1/"`},
		"template": {`"relay{?for}"`, `"{+path}/relay"`}, "method": {`"href":"relay{?for}"`,
			`"href":"relay","htv:methodName":"DELETE"`},
		"token": {"nosec", "bearer"}, "oauth": {"nosec", "oauth2"}, "no description": {`"properties"`, `"actions"`},
		"list": {`{"@context"`, `[{"@context"`}, "op": {`"op":["readproperty","writeproperty"]`, `"op":{"a":1}`},
	} {
		f := newFake(t)
		f.td = strings.Replace(thingDescription, change[0], change[1], 1)
		if f.td == thingDescription {
			t.Fatal(name)
		}
		r := open(t, f.thing())
		failed := 0
		for point, v := range map[string]device.Value{"relay": device.Bool(true), "level": device.Number(80)} {
			if err := r.Apply(t.Context(), point, v); err != nil {
				failed++
				if is := reading(t, r, point); is.Quality == device.Good && name != "read-only" {
					t.Errorf("%s: %v", name, is)
				}
				if f.has(point) == v {
					t.Errorf("%s: %s was written", name, point)
				}
			}
		}
		if failed == 0 {
			t.Errorf("%s: all is written", name)
		}
	}
}

// TestThingIsReplaced: after a failure the description is read again.
func TestThingIsReplaced(t *testing.T) {
	f := newFake(t)
	r := open(t, f.thing())
	if is := reading(t, r, "relay"); is.Quality != device.Good {
		t.Fatal(is)
	}
	f.mu.Lock()
	f.td = strings.Replace(thingDescription, "unit:PERCENT", "W", 1)
	f.mu.Unlock()
	f.set(func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) })
	if is := reading(t, r, "level"); is.Quality != device.Bad {
		t.Fatal(is)
	}
	f.set(nil)
	if err := r.Apply(t.Context(), "level", device.Number(50)); err == nil || f.has("level") == device.Number(50) {
		t.Error("another Thing is taken for it")
	}
	if err := r.Apply(t.Context(), "relay", device.Bool(true)); err != nil {
		t.Error(err)
	}
}

// TestThingIntegers: an integer property is written in whole numbers.
func TestThingIntegers(t *testing.T) {
	f := newFake(t)
	r := open(t, f.thing())
	if err := r.Apply(t.Context(), "level", device.Number(33.3)); err != nil {
		t.Fatal(err)
	}
	if is := reading(t, r, "level"); is.Value != device.Number(33.3) || f.has("level") != device.Number(33) {
		t.Error(is, f.has("level"))
	}
}

// TestLargeDescriptions: a description needs little more memory than its text.
func TestLargeDescriptions(t *testing.T) {
	list := func(open, one, end string) []byte {
		return []byte(open + strings.Repeat(one+",", (maxAnswer-100)/(len(one)+1)) + one + end)
	}
	many := []byte(`{"properties":{`)
	for i := 0; len(many) < maxAnswer-20; i++ {
		many = fmt.Appendf(many, `"%d":{},`, i)
	}
	for name, text := range map[string][]byte{
		"forms": list(`{"properties":{"a":{"forms":[`, "{}", "]}}}"), "operations": list(`{"properties":{"a":{"forms":[{"op":[`, `""`, "]}]}}}"),
		"properties": append(many, `"x":{}}}`...),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		parseDescription(text)
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 4*maxAnswer {
			t.Errorf("%s: %d KiB", name, n>>10)
		}
	}
}

func FuzzDescription(f *testing.F) {
	f.Add([]byte(thingDescription), "relay")
	f.Fuzz(func(t *testing.T, text []byte, name string) {
		d, err := parseDescription(text)
		if err != nil {
			return
		}
		c, err := (&endpoint{URL: "http://127.0.0.1:8080/td"}).open()
		if err != nil {
			t.Fatal(err)
		}
		for _, op := range []string{readProperty, writeProperty} {
			ask, err := d.request(c, name, op)
			if err == nil && (ask.to.Host != "127.0.0.1:8080" || ask.to.Scheme != "http" || ask.to.User != nil) {
				t.Errorf("it leads to %v", ask.to)
			}
		}
		d.Properties[name].check(device.Point{Kind: device.KindLevel, Range: device.Range{Max: 1}}, driver.Quantity{})
	})
}
