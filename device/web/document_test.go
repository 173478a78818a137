package web

import (
	"context"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentsite/device"
	"agentsite/device/devicetest"
	"agentsite/device/driver"
)

func TestDocumentDevice(t *testing.T) {
	var f *fake
	devicetest.Options{Level: func(point string) device.Value { return f.has(point) }}.Run(t,
		func(t *testing.T) device.Device {
			f = newFake(t)
			dev, err := driver.Open(t.Context(), f.config())
			if err != nil {
				t.Fatal(err)
			}
			return dev
		})
}

// TestHostile: no answer that is none of the expected documents becomes a value, none takes longer than its caller
// waits, and afterwards the device is read again.
func TestHostile(t *testing.T) {
	for name, spoil := range spoiled {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			r := open(t, f.config())
			f.set(spoil)
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			all, err := r.Sample(ctx)
			for _, is := range all {
				if is.Quality == device.Good || !is.Value.IsZero() || is.Why == "" {
					t.Errorf("%v is read from it", is)
				}
			}
			if err == nil && len(all) != 4 {
				t.Errorf("%d points", len(all))
			}
			if err != nil && strings.Contains(err.Error(), "/status") {
				t.Error("the error has the address:", err)
			}
			ctx, cancel = context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			if err := r.Apply(ctx, "relay", device.Bool(true)); err == nil {
				t.Error("a write is confirmed by it")
			}
			f.set(nil)
			if err := r.Apply(t.Context(), "relay", device.Bool(true)); err != nil {
				t.Error("afterwards:", err)
			}
			if is := reading(t, r, "relay"); is.Value != device.Bool(true) {
				t.Error("afterwards:", is)
			}
		})
	}
}

// TestPointFaults: a value that is none is a fault of its point, and only of this one.
func TestPointFaults(t *testing.T) {
	for _, document := range []string{
		`{"temperature":{"value":null,"unit":"°C"},"mode":"idle"}`, `{"temperature":{"unit":"°C"},"mode":"idle"}`,
		`{"temperature":{"value":"unavailable","unit":"°C"},"mode":"idle"}`,
		`{"temperature":{"value":true,"unit":"°C"},"mode":"idle"}`,
		`{"temperature":{"value":70.7,"unit":"°F"},"mode":"idle"}`, `{"temperature":{"value":21.5},"mode":"idle"}`,
		`{"temperature":{"value":1e999,"unit":"°C"},"mode":"idle"}`,
		`{"temperature":{"value":-273,"unit":"°C"},"mode":"idle"}`,
		`{"temperature":[21.5],"mode":"idle"}`,
	} {
		f := newFake(t)
		r := open(t, f.config())
		f.set(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, document) })
		if is := reading(t, r, "temperature"); is.Quality != device.Bad || !is.Value.IsZero() || is.Why == "" {
			t.Errorf("%s: %v", document, is)
		}
		if is := reading(t, r, "mode"); is.Quality != device.Good || is.Value != device.Text("idle") {
			t.Errorf("%s: %v", document, is)
		}
		f.set(nil)
	}
}

// TestConfirmed: a write that the server accepts and does not do is no success, and neither is one by somebody else.
func TestConfirmed(t *testing.T) {
	f := newFake(t)
	r := open(t, f.config())
	f.set(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/status" {
			f.answer(w, r)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	err := r.Apply(ctx, "relay", device.Bool(true))
	if device.AsFault(err).Kind != device.UnknownOutcome || !errors.Is(err, context.DeadlineExceeded) {
		t.Error("a lie is believed:", err)
	}
	f.set(nil)
	if err := r.Apply(t.Context(), "relay", device.Bool(true)); err != nil {
		t.Fatal(err)
	}
	f.mu.Lock()
	f.relay = false // its button
	f.mu.Unlock()
	if is := reading(t, r, "relay"); is.Value != device.Bool(false) {
		t.Error("the other writer is not seen:", is)
	}
}

// TestLevels: a number is sent in the server's steps, and its rounding is not taken for another writer.
func TestLevels(t *testing.T) {
	f := newFake(t)
	r := open(t, f.config())
	for v, sent := range map[float64]string{33.333: `{"to":33.5}`, 99.9: `{"to":100}`, 0.2: `{"to":0}`,
		50: `{"to":50}`} {
		if err := r.Apply(t.Context(), "level", device.Number(v)); err != nil {
			t.Fatal(err)
		}
		if is := reading(t, r, "level"); is.Value != device.Number(v) {
			t.Errorf("%v reads %v", v, is)
		}
		if f.mu.Lock(); f.writes[len(f.writes)-1] != sent {
			t.Errorf("%v is sent as %s, not %s", v, f.writes[len(f.writes)-1], sent)
		}
		f.mu.Unlock()
	}
	f.mu.Lock()
	f.level = 12
	f.mu.Unlock()
	if is := reading(t, r, "level"); is.Value != device.Number(12) {
		t.Error("the other writer is not seen:", is)
	}
}

// TestPauses: a server that is away is not asked by each Sample; a write does not wait.
func TestPauses(t *testing.T) {
	f := newFake(t)
	r := open(t, f.config())
	f.set(spoiled["status"])
	before := f.count()
	for range 50 {
		if is := reading(t, r, "relay"); is.Quality != device.Bad {
			t.Fatal(is)
		}
	}
	if n := f.count() - before; n > 2 {
		t.Errorf("it is asked %d times", n)
	}
	f.set(nil)
	if err := r.Apply(t.Context(), "relay", device.Bool(true)); err != nil {
		t.Error(err)
	}
	if is := reading(t, r, "relay"); is.Value != device.Bool(true) {
		t.Error("after a write:", is)
	}
}

// TestAway: a device with outputs is opened while its server is away, and one without is Offline.
func TestAway(t *testing.T) {
	f := newFake(t)
	c := f.config()
	f.Server.Close()
	r := open(t, c)
	if err := r.Apply(t.Context(), "relay", device.Bool(false)); device.AsFault(err).Kind != device.Offline {
		t.Error(err)
	}
	if len(r.Describe().Points) != 4 {
		t.Error(r.Describe())
	}
	c = f.config()
	c.Outputs = nil
	if _, err := driver.Open(t.Context(), c); device.AsFault(err).Kind != device.Offline {
		t.Error(err)
	}
}

// TestRenew: a value away from safe is sent again, as long as the server says it.
func TestRenew(t *testing.T) {
	f := newFake(t)
	r := open(t, f.config())
	p, err := r.output("relay")
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Apply(t.Context(), "relay", device.Bool(true)); err != nil {
		t.Fatal(err)
	}
	sent := func() int {
		reading(t, r, "relay")
		f.mu.Lock()
		defer f.mu.Unlock()
		return len(f.writes)
	}
	before := sent()
	p.renew = time.Nanosecond
	if n := sent() - before; n != 1 {
		t.Errorf("it was sent %d times", n)
	}
	f.mu.Lock()
	f.relay = false
	f.mu.Unlock()
	if n := sent() - before; n != 1 {
		t.Error("it was sent against another writer")
	}
	if err := r.Apply(t.Context(), "relay", device.Bool(false)); err != nil {
		t.Fatal(err)
	}
	before = sent()
	if n := sent() - before; n != 0 {
		t.Error("the safe value was sent again")
	}
}

// TestCredentials: a password is sent to the server, and stands in no error.
func TestCredentials(t *testing.T) {
	for _, header := range []string{"", "X-Api-Key"} {
		f := newFake(t)
		c := f.config()
		c.endpoint.KeyFile, c.endpoint.KeyHeader = file(t, "s3cret\n"), header
		want := map[string]string{"": "Bearer s3cret", "X-Api-Key": "s3cret"}[header]
		name := header
		if name == "" {
			name = "Authorization"
		}
		got := ""
		f.set(func(w http.ResponseWriter, r *http.Request) {
			got = r.Header.Get(name)
			w.WriteHeader(http.StatusUnauthorized)
		})
		r := open(t, c)
		if is := reading(t, r, "relay"); got != want || strings.Contains(is.Why, "s3cret") {
			t.Errorf("got %q, want %q; %s", got, want, is.Why)
		}
	}
	f := newFake(t)
	c := f.config()
	c.endpoint.User, c.endpoint.PasswordFile = "me", file(t, "s3cret")
	f.set(func(w http.ResponseWriter, r *http.Request) {
		if name, password, _ := r.BasicAuth(); name == "me" && password == "s3cret" {
			f.answer(w, r)
		}
	})
	if is := reading(t, open(t, c), "mode"); is.Quality != device.Good {
		t.Error(is)
	}
}

// TestMistakes: what cannot be right is found before anything is asked.
func TestMistakes(t *testing.T) {
	for name, spoil := range map[string]func(c *documentConfig){
		"no url":         func(c *documentConfig) { c.URL = "" },
		"scheme":         func(c *documentConfig) { c.URL = "ftp://10.0.0.1" },
		"public http":    func(c *documentConfig) { c.URL = "http://example.org" },
		"public address": func(c *documentConfig) { c.URL = "http://1.1.1.1" },
		"password":       func(c *documentConfig) { c.URL = "http://me:it@10.0.0.1" },
		"user":           func(c *documentConfig) { c.User = "me" },
		"header":         func(c *documentConfig) { c.KeyFile, c.KeyHeader = "x", "Host" },
		"ca":             func(c *documentConfig) { c.CAFile = "x" },
		"no points":      func(c *documentConfig) { c.Inputs, c.Outputs = nil, nil },
		"other host": func(c *documentConfig) {
			c.Inputs["mode"] = documentInput{documentPlace: documentPlace{From: "//evil/x"},
				InputPoint: c.Inputs["mode"].InputPoint}
		},
		"other url": func(c *documentConfig) {
			c.Inputs["mode"] = documentInput{documentPlace: documentPlace{From: "http://evil/x"},
				InputPoint: c.Inputs["mode"].InputPoint}
		},
		"no range": func(c *documentConfig) { c.Inputs["x"] = documentInput{} },
		"no value": func(c *documentConfig) { spoilOutput(c, func(o *documentOutput) { o.Set = "/relay" }) },
		"no safe":  func(c *documentConfig) { spoilOutput(c, func(o *documentOutput) { o.Safe = device.Value{} }) },
		"method":   func(c *documentConfig) { spoilOutput(c, func(o *documentOutput) { o.Method = "DELETE" }) },
		"get body": func(c *documentConfig) { spoilOutput(c, func(o *documentOutput) { o.Body = "{value}" }) },
		"no JSON": func(c *documentConfig) {
			spoilOutput(c, func(o *documentOutput) { o.Method, o.Body = "", `{"on":{value}` })
		},
		"no port":   func(c *documentConfig) { c.URL = "http://10.0.0.1:65536" },
		"one word":  func(c *documentConfig) { spoilOutput(c, func(o *documentOutput) { o.OffIs = "" }) },
		"same word": func(c *documentConfig) { spoilOutput(c, func(o *documentOutput) { o.OffIs = "on" }) },
		"step":      func(c *documentConfig) { spoilOutput(c, func(o *documentOutput) { o.Step = 1 }) },
		"host word": func(c *documentConfig) {
			spoilOutput(c, func(o *documentOutput) { o.Set, o.OnIs = "{value}", "http://evil/" })
		},
		"renew": func(c *documentConfig) { spoilOutput(c, func(o *documentOutput) { o.Renew = time.Millisecond }) },
	} {
		f := newFake(t)
		c := f.config()
		spoil(c)
		if _, err := driver.Open(t.Context(), c); device.AsFault(err).Kind != device.Invalid {
			t.Errorf("%s: %v", name, err)
		}
		if f.count() > 0 {
			t.Errorf("%s: the server was asked", name)
		}
	}
	for _, host := range []string{"192.168.1.2", "10.0.0.1", "127.0.0.1", "fd00::1", "fe80::1", "plug.local",
		"x.home.arpa"} {
		if !atHome(host) {
			t.Errorf("%s is not at home", host)
		}
	}
}

func spoilOutput(c *documentConfig, spoil func(o *documentOutput)) {
	o := c.Outputs["relay"]
	spoil(&o)
	c.Outputs["relay"] = o
}

// TestOneAtATime: however many ask, the server has one request, and what waits ends with its context.
func TestOneAtATime(t *testing.T) {
	f := newFake(t)
	r := open(t, f.config())
	inside, hold := make(chan bool, 10), make(chan bool)
	f.set(func(w http.ResponseWriter, r *http.Request) {
		inside <- true
		select {
		case <-hold:
		case <-r.Context().Done():
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	ends := make(chan error, 5)
	for range 5 {
		go func() { _, err := r.Sample(ctx); ends <- err }()
	}
	<-inside
	cancel()
	for range 5 {
		if err := <-ends; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	if len(inside) > 0 {
		t.Error("it has several requests")
	}
	f.set(nil)
	close(hold)
}

// TestSampleGivesWay: a document that does not come delays no output, and the Sample goes on after the Apply.
func TestSampleGivesWay(t *testing.T) {
	f := newFake(t)
	c := f.config()
	c.Inputs["slow"] = documentInput{documentPlace: documentPlace{From: "/slow"}, InputPoint: driver.InputPoint{State: true}}
	r := open(t, c)
	inside, hold := make(chan bool, 10), make(chan bool)
	f.set(func(w http.ResponseWriter, q *http.Request) {
		if q.URL.Path != "/slow" {
			f.answer(w, q)
			return
		}
		inside <- true
		select {
		case <-hold:
		case <-q.Context().Done():
		}
		io.WriteString(w, "true")
	})
	sampled := make(chan error, 1)
	go func() { _, err := r.Sample(t.Context()); sampled <- err }()
	<-inside
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second) // a Sample may take ten
	defer cancel()
	err := r.Apply(ctx, "relay", device.Bool(true))
	close(hold)
	if err != nil {
		t.Error(err)
	}
	if err := <-sampled; err != nil {
		t.Error(err)
	}
}

// TestDocumentsOfProducts: answers as their makers document them are read.
func TestDocumentsOfProducts(t *testing.T) {
	watts := driver.InputPoint{Quantity: driver.Quantity{Unit: "W", Range: device.Range{Min: 0, Max: 3680}}}
	for name, tt := range map[string]struct {
		document string
		input    driver.InputPoint
		path     driver.Path
		want     device.Value
	}{
		// https://shelly-api-docs.shelly.cloud/gen1/#shelly-plug-plugs-meter-0
		"Shelly Gen1": {`{"power":12.5,"overpower":0,"is_valid":true,"timestamp":1574267838,"counters":[1,2,3],"total":5}`, watts, "power", device.Number(12.5)},
		// https://shelly-api-docs.shelly.cloud/gen2/ComponentsAndServices/Switch/#status
		"Shelly Gen2": {`{"id":0,"source":"WS_in","output":false,"apower":0.5,"voltage":225.9,"current":0,"aenergy":{"total":11.679,"by_minute":[0,0,0],
			"minute_ts":1654511972},"temperature":{"tC":53.3,"tF":127.9}}`, driver.InputPoint{Quantity: celsius()}, "temperature.tC", device.Number(53.3)},
		// https://tasmota.github.io/docs/Commands/ (Power) and https://tasmota.github.io/docs/JSON-Status-Responses/ (Status
		// 8)
		"Tasmota power": {`{"POWER":"ON"}`, driver.InputPoint{State: true}, "POWER", device.Bool(true)},
		"Tasmota sensor": {`{"StatusSNS":{"Time":"2019-11-03T20:45:37","DS18B20-1":{"Id":"00000","Temperature":12.3},"TempUnit":"C"}}`,
			driver.InputPoint{Quantity: celsius()}, "StatusSNS.DS18B20-1.Temperature", device.Number(12.3)},
		// https://open-meteo.com/en/docs
		"Open-Meteo": {`{"latitude":52.52,"current_units":{"time":"iso8601","temperature_2m":"°C"},"current":{"time":"2022-07-01T09:00","temperature_2m":13.3}}`,
			driver.InputPoint{Quantity: celsius()}, "current.temperature_2m", device.Number(13.3)},
	} {
		f := newFake(t)
		f.set(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, tt.document) })
		c := &documentConfig{endpoint: endpoint{URL: f.URL},
			Inputs: map[string]documentInput{"it": {documentPlace: documentPlace{Path: tt.path}, InputPoint: tt.input}}}
		if is := reading(t, open(t, c), "it"); is.Value != tt.want || is.Quality != device.Good {
			t.Errorf("%s: %v", name, is)
		}
	}
}

func TestOrder(t *testing.T) {
	f := newFake(t)
	r := open(t, f.config())
	all, err := r.Sample(t.Context())
	if err != nil || !slices.EqualFunc(all, r.Describe().Points, func(d device.Reading,
		p device.Point) bool {
		return d.Point == p.Name
	}) {
		t.Error(all, err)
	}
}

// TestUnsentIsNeverSent: what is unsent when a request is given up is dropped, and does not arrive once a cut network
// is back: the connection ends by a reset, which discards it.
func TestUnsentIsNeverSent(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ends := make(chan error, 1)
	go func() {
		c, err := l.Accept()
		if err == nil {
			_, err = io.Copy(io.Discard, c) // until the client gives up
			c.Close()
		}
		ends <- err
	}()
	f := &fake{}
	c := f.config()
	c.URL = "http://" + l.Addr().String()
	r := open(t, c)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := r.Apply(ctx, "relay", device.Bool(true)); err == nil {
		t.Error("it is confirmed by nobody")
	}
	if err := <-ends; !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the connection ends with %v, not by a reset", err)
	}
}

// TestCertificates: a server is asked if the certificate of its authority is known, and only then.
func TestCertificates(t *testing.T) {
	asked := 0
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		io.WriteString(w, "21.5")
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	c := &documentConfig{endpoint: endpoint{URL: server.URL}, Inputs: map[string]documentInput{"it": {InputPoint: driver.InputPoint{Quantity: celsius()}}}}
	if _, err := driver.Open(t.Context(), c); device.AsFault(err).Kind != device.Offline || asked > 0 {
		t.Error(err)
	}
	c.CAFile = file(t, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	if is := reading(t, open(t, c), "it"); is.Value != device.Number(21.5) {
		t.Error(is)
	}
}
