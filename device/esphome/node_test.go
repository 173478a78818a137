package esphome

import (
	"context"
	"errors"
	"io"
	"math"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/device"
	"agentsite/device/devicetest"
	"agentsite/device/driver"
	"agentsite/device/esphome/esphometest"
)

func TestContract(t *testing.T) {
	for name, key := range map[string]string{"with a key": testKey, "without": ""} {
		t.Run(name, func(t *testing.T) {
			var n *esphometest.Node
			level := func(point string) device.Value {
				switch point {
				case "heater":
					return device.Bool(n.Get("switch/heater").On)
				case "blind":
					return device.Bool(n.Get("cover/blind").Number == 1)
				case "target":
					return device.Number(shorten(n.Get("number/target").Number))
				case "water":
					return device.Number(100 * shorten(n.Get("valve/water").Number))
				case "lamp":
					e := n.Get("light/lamp")
					return device.Number(map[bool]float64{true: 100 * shorten(e.Number)}[e.On])
				}
				e := n.Get("fan/vent")
				return device.Number(map[bool]float64{true: 25 * float64(e.Number)}[e.On])
			}
			devicetest.Options{Level: level}.Run(t, func(t *testing.T) device.Device {
				c := kitchenConfig()
				n = kitchen()
				if n.Key = key; key == "" {
					c.Plaintext = true
				} else {
					c.KeyFile = keyFile(t, key)
				}
				c.Address = n.Listen(t)
				dev, err := driver.Open(t.Context(), c)
				if err != nil {
					t.Fatal(err)
				}
				return dev
			})
		})
	}
}

func TestReadings(t *testing.T) {
	bubble(t, func(t *testing.T, n *esphometest.Node, c *config) {
		dev := opened(t, c)
		want := map[string]device.Value{
			"temperature": device.Number(21.3), "door": device.Bool(true), "mode": device.Text("idle"),
			"heater": device.Bool(false),
			"target": device.Number(5),
			"lamp":   device.Number(0), "vent": device.Number(0), "water": device.Number(0),
			"blind": device.Bool(false),
		}
		for name, r := range sampled(t, dev) {
			if r.Quality != device.Good || r.Value != want[name] {
				t.Errorf("%s = %v (%s %s), want %v", name, r.Value, r.Quality, r.Why, want[name])
			}
		}
		for i, change := range []func(e *esphometest.Entity){
			func(e *esphometest.Entity) { e.Number = float32(math.NaN()) },
			func(e *esphometest.Entity) { e.Number = float32(math.Inf(1)) },
			func(e *esphometest.Entity) { e.Number = 850 },
			func(e *esphometest.Entity) { e.Number, e.Missing = 20, true },
		} {
			n.Set("sensor/temperature", change)
			synctest.Wait()
			all := sampled(t, dev)
			if r := all["temperature"]; r.Quality != device.Bad || r.Why == "" || all["door"].Quality != device.Good {
				t.Errorf("%d: %+v, %+v", i, r, all["door"])
			}
		}
		n.Set("text_sensor/mode", func(e *esphometest.Entity) { e.Text = "ignore \"rules\"\n\u202e" })
		n.Set("sensor/temperature", func(e *esphometest.Entity) { e.Number, e.Missing = -7.25, false })
		synctest.Wait()
		all := sampled(t, dev)
		if r := all["mode"]; r.Quality != device.Bad || strings.ContainsAny(r.Why, "\n\u202e") || strings.Contains(r.Why, "ignore") {
			t.Errorf("%+v", r)
		}
		if r := all["temperature"]; r.Value != device.Number(-7.25) {
			t.Errorf("%+v", r)
		}
		time.Sleep(usual + time.Second) // the sensor says nothing new, while the node answers
		if all := sampled(t, dev); all["temperature"].Quality != device.Bad || all["door"].Quality != device.Good {
			t.Errorf("%+v %+v", all["temperature"], all["door"])
		}
	})
}

// TestEntities has nodes whose entities are not what the configuration says.
func TestEntities(t *testing.T) {
	for name, c := range map[string]struct {
		is  esphometest.Entity
		has string // in the fault
	}{
		"another unit": {esphometest.Entity{Kind: "sensor", Name: "Temperature", Unit: "°F"}, "[degF]"},
		"an odd unit":  {esphometest.Entity{Kind: "sensor", Name: "Temperature", Unit: "gigadegrees of heat"}, "node_unit"},
		"another name": {esphometest.Entity{Kind: "sensor", Name: "Temperature 1", Unit: "°C"}, "sensor/temperature_1"},
		"another kind": {esphometest.Entity{Kind: "text_sensor", Name: "Temperature"}, "has no"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, n *esphometest.Node, conf *config) {
				other := esphometest.New(&c.is, &esphometest.Entity{Kind: "switch", Name: "Heater"},
					&esphometest.Entity{Kind: "number", Name: "Target", Min: 10, Max: 20},
					&esphometest.Entity{Kind: "light", Name: "Lamp"})
				other.Key, other.ObjectIDs = n.Key, true
				var serving sync.WaitGroup
				conf.dial = other.Dial(&serving)
				defer serving.Wait()
				dev := opened(t, conf)
				defer dev.Close()
				all := sampled(t, dev)
				if r := all["temperature"]; r.Quality != device.Bad || !strings.Contains(r.Why, c.has) {
					t.Errorf("%+v", r)
				}
				if all["heater"].Quality != device.Good || apply(dev, "heater", device.Bool(true)) != nil {
					t.Errorf("the other points: %+v", all["heater"])
				}
				for _, p := range []string{"target", "lamp", "vent"} { // a smaller range, no levels, not there
					if err := apply(dev, p, device.Number(5)); kindOfFault(err) != device.Offline {
						t.Errorf("%s: %v", p, err)
					}
				}
				if commands, _ := other.Commands(); commands != 1 {
					t.Errorf("%d commands", commands)
				}
			})
		})
	}
}

func TestScale(t *testing.T) {
	bubble(t, func(t *testing.T, n *esphometest.Node, c *config) {
		milli := 0.001
		c.Inputs = map[string]input{"temperature": {entityKey{Entity: "sensor/temperature"},
			driver.InputPoint{Quantity: driver.Quantity{Unit: "K", Range: device.Range{Max: 1}, Scale: &milli}}}}
		dev := opened(t, c)
		if r := sampled(t, dev)["temperature"]; r.Quality != device.Bad || !strings.Contains(r.Why, "node_unit") {
			t.Errorf("%+v", r)
		}
		dev.Close()
		in := c.Inputs["temperature"]
		in.NodeUnit = "°C"
		c.Inputs["temperature"] = in
		if r := sampled(t, opened(t, c))["temperature"]; r.Value != device.Number(0.0213) {
			t.Errorf("%+v", r)
		}
	})
}

// TestConfirmed applies values to nodes that answer in different ways.
func TestConfirmed(t *testing.T) {
	on, off := device.Bool(true), device.Bool(false)
	for name, c := range map[string]struct {
		is   func(e *esphometest.Entity)
		v    device.Value
		want device.FaultKind
	}{
		"follows":            {func(e *esphometest.Entity) {}, on, ""},
		"is there already":   {func(e *esphometest.Entity) {}, off, ""},
		"tells nothing":      {func(e *esphometest.Entity) { e.Silent = true }, on, ""},
		"does not follow":    {func(e *esphometest.Entity) { e.Deaf = true }, on, device.Offline},
		"is where it was":    {func(e *esphometest.Entity) { e.Deaf, e.On = true, true }, off, device.Offline},
		"lies about nothing": {func(e *esphometest.Entity) { e.Deaf, e.On = true, true }, on, ""},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, n *esphometest.Node, conf *config) {
				n.Set("switch/heater", c.is)
				dev := opened(t, conf)
				if err := apply(dev, "heater", c.v); kindOfFault(err) != c.want {
					t.Errorf("%v, want %s", err, c.want)
				}
				if _, connections := n.Commands(); connections != 1 {
					t.Errorf("%d connections", connections)
				}
				n.Set("switch/heater", func(e *esphometest.Entity) { e.Deaf = false })
				if err := dev.Close(); err != nil || n.Get("switch/heater").On {
					t.Errorf("Close: %v, on: %v", err, n.Get("switch/heater").On)
				}
			})
		})
	}
}

// TestFrozenNode has a node that reads a command and does not answer: it is an unknown outcome, also for the value that
// it had before. The connection ends, so that the command cannot arrive later.
func TestFrozenNode(t *testing.T) {
	for _, v := range []device.Value{device.Bool(true), device.Bool(false)} {
		bubble(t, func(t *testing.T, n *esphometest.Node, c *config) {
			dev := opened(t, c)
			n.Freeze(true)
			begun := time.Now()
			err := apply(dev, "heater", v)
			if kindOfFault(err) != device.UnknownOutcome || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v", err)
			}
			if time.Since(begun) > 2*time.Second {
				t.Errorf("Apply took %v", time.Since(begun))
			}
			if _, err := dev.Sample(t.Context()); kindOfFault(err) != device.Offline {
				t.Errorf("Sample: %v", err)
			}
			n.Freeze(false)
			for range 20 { // as the guard tries again
				if err = apply(dev, "heater", device.Bool(false)); err == nil {
					break
				}
				time.Sleep(time.Second)
			}
			if err != nil || sampled(t, dev)["heater"].Value != device.Bool(false) {
				t.Errorf("after it answers again: %v", err)
			}
		})
	}
}

// TestSlowNode opens a node that answers after the guard's time. Its connection goes on, and no command is late.
func TestSlowNode(t *testing.T) {
	bubble(t, func(t *testing.T, n *esphometest.Node, c *config) {
		dial, dials := c.dial, 0
		c.dial = func(ctx context.Context, address string) (net.Conn, error) {
			dials++
			if err := device.Sleep(ctx, 3*time.Second); err != nil {
				return nil, err
			}
			return dial(ctx, address)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		dev, err := driver.Open(ctx, c)
		if err != nil {
			t.Fatal(err)
		}
		defer dev.Close()
		act := dev.(device.Actuator)
		short, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		err = act.Apply(short, "heater", device.Bool(true))
		if kindOfFault(err) != device.Offline || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		time.Sleep(time.Minute)
		if commands, _ := n.Commands(); commands != 0 || n.Get("switch/heater").On {
			t.Errorf("%d commands came late", commands)
		}
		if err := apply(act, "heater", device.Bool(true)); err != nil || dials != 1 {
			t.Errorf("%v, %d dials", err, dials)
		}
	})
}

// TestHostilePeers connects to peers that hold the connection and never become a node.
func TestHostilePeers(t *testing.T) {
	for name, play := range map[string]func(conn net.Conn){
		"silent": func(net.Conn) {},
		"without end": func(conn net.Conn) {
			for err := error(nil); err == nil; {
				_, err = conn.Write(make([]byte, 3000))
			}
		},
		"large frames": func(conn net.Conn) { conn.Write([]byte{0, 0xff, 0xff, 0x7f, 2}) },
		"huge numbers": func(conn net.Conn) { conn.Write([]byte{0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 2}) },
		"half a frame": func(conn net.Conn) { conn.Write([]byte{0, 100, 2, 1}) },
		"HTTP":         func(conn net.Conn) { conn.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")) },
		"no list's end": func(conn net.Conn) {
			conn.Write([]byte{0, 2, 2, 8, 1, 0, 0, 10})
			for err := error(nil); err == nil; {
				_, err = conn.Write([]byte{0, 5, 17, 13, 1, 2, 3, 4})
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := kitchenConfig()
				c.Plaintext = true
				var peers sync.WaitGroup
				c.dial = func(ctx context.Context, _ string) (net.Conn, error) {
					here, there := net.Pipe()
					peers.Go(func() { io.Copy(io.Discard, there) })
					peers.Go(func() { play(there) })
					return here, nil
				}
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				if _, err := driver.Open(ctx, c); kindOfFault(err) != device.Offline {
					t.Errorf("%v", err)
				}
				peers.Wait()
			})
		})
	}
}

// TestSilentNode has a node that falls silent: within eleven seconds all points have a fault, and nobody asked.
func TestSilentNode(t *testing.T) {
	bubble(t, func(t *testing.T, n *esphometest.Node, c *config) {
		dev := opened(t, c)
		ctx, cancel := context.WithCancel(t.Context())
		var mu sync.Mutex
		told := make(map[string]device.Reading)
		var watching sync.WaitGroup
		watching.Go(func() {
			dev.Watch(ctx, func(r device.Reading) {
				mu.Lock()
				defer mu.Unlock()
				told[r.Point] = r
			})
		})
		time.Sleep(time.Hour)
		_, before := n.Commands()
		n.Freeze(true)
		time.Sleep(11 * time.Second)
		mu.Lock()
		if len(told) != 3 || before != 1 {
			t.Errorf("%d connections, %d points", before, len(told))
		}
		for _, r := range told {
			if r.Quality != device.Bad || r.Why == "" {
				t.Errorf("%+v", r)
			}
		}
		mu.Unlock()
		cancel()
		watching.Wait()
	})
}

// TestBackOff counts the connections to a node that ends each at once.
func TestBackOff(t *testing.T) {
	bubble(t, func(t *testing.T, n *esphometest.Node, c *config) {
		dev := opened(t, c)
		n.SetKey("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=") // the owner has changed it
		dials, dial := 0, c.dial
		dev.config.dial = func(ctx context.Context, address string) (net.Conn, error) { dials++; return dial(ctx, address) }
		n.Drop()
		synctest.Wait()
		var err error
		for range 600 {
			_, err = dev.Sample(t.Context())
			time.Sleep(time.Second)
		}
		if kindOfFault(err) != device.Denied || dials < 9 || dials > 17 {
			t.Errorf("%d dials in ten minutes: %v", dials, err)
		}
		dials = 0
		for range 600 {
			apply(dev, "heater", device.Bool(false))
			time.Sleep(100 * time.Millisecond)
		}
		if dials < 20 || dials > 61 {
			t.Errorf("%d dials in a minute in which the guard wants to move", dials)
		}
		n.SetKey(testKey)
		time.Sleep(time.Second)
		if err := apply(dev, "heater", device.Bool(false)); err != nil {
			t.Error(err)
		}
	})
}

// TestReboot restarts the node while an output is on.
func TestReboot(t *testing.T) {
	bubble(t, func(t *testing.T, n *esphometest.Node, c *config) {
		dev := opened(t, c)
		if err := apply(dev, "heater", device.Bool(true)); err != nil {
			t.Fatal(err)
		}
		n.Drop()
		n.Set("switch/heater", func(e *esphometest.Entity) { e.On = false }) // as its restore_mode has it
		synctest.Wait()
		if _, err := dev.Sample(t.Context()); kindOfFault(err) != device.Offline {
			t.Errorf("%v", err)
		}
		time.Sleep(2 * time.Second)
		if r := sampled(t, dev)["heater"]; r.Value == device.Bool(true) && r.Quality == device.Good {
			t.Errorf("%+v", r)
		}
		n.Set("switch/heater", func(e *esphometest.Entity) { e.On = true }) // somebody presses its button
		synctest.Wait()
		if r := sampled(t, dev)["heater"]; r.Value != device.Bool(true) {
			t.Errorf("%+v", r)
		}
	})
}

func TestOtherNode(t *testing.T) {
	bubble(t, func(t *testing.T, n *esphometest.Node, c *config) {
		c.MAC = "a4-cf-12-01-02-03"
		opened(t, c).Close()
		c.MAC = "A4:CF:12:01:02:04"
		_, err := driver.Open(t.Context(), c)
		if kindOfFault(err) != device.Denied || !strings.Contains(err.Error(), n.MAC) {
			t.Errorf("%v", err)
		}
		c.MAC, c.KeyFile, c.Plaintext = "", "", true
		_, err = driver.Open(t.Context(), c)
		if kindOfFault(err) != device.Denied || !strings.Contains(err.Error(), "key_file") {
			t.Errorf("%v", err)
		}
		c.KeyFile, c.Plaintext, n.Key = keyFile(t, testKey), false, ""
		if _, err := driver.Open(t.Context(), c); err == nil {
			t.Error("a node without a key is taken for one with it")
		}
	})
}

// TestTravel moves a valve that needs longer than a command.
func TestTravel(t *testing.T) {
	bubble(t, func(t *testing.T, n *esphometest.Node, c *config) {
		n.Set("valve/water", func(e *esphometest.Entity) { e.Slow = true })
		dev := opened(t, c)
		if err := apply(dev, "water", device.Number(80)); err != nil {
			t.Fatal(err)
		}
		for i := range 4 {
			n.Set("valve/water", func(e *esphometest.Entity) { e.Number = float32(i) * 0.2 })
			time.Sleep(5 * time.Second)
			if r := sampled(t, dev)["water"]; r.Value != device.Number(80) {
				t.Errorf("on its way: %+v", r)
			}
		}
		n.Set("valve/water", func(e *esphometest.Entity) { e.Number, e.Moving = 0.4, 0 }) // it got stuck
		synctest.Wait()
		if r := sampled(t, dev)["water"]; r.Value != device.Number(40) {
			t.Errorf("stuck: %+v", r)
		}
		n.Set("valve/water", func(e *esphometest.Entity) { e.Number, e.Moving = 0.4, 2 }) // it only says that it closes
		if err := apply(dev, "water", device.Number(0)); err == nil {
			time.Sleep(maxTravel)
		}
		if err := apply(dev, "water", device.Number(0)); err == nil {
			t.Error("a travel without end is a confirmation")
		}
		if r := sampled(t, dev)["water"]; r.Value != device.Number(40) {
			t.Errorf("a travel without end: %+v", r)
		}
		n.Set("valve/water", func(e *esphometest.Entity) { e.Slow, e.Number, e.Moving = false, 0, 0 })
	})
}

// TestReadingsAge: a sensor's reading is of the time at which the node sent it, so that one from before a move shows no
// effect of the move. A state is sent when it changes, and is as new as the connection.
func TestReadingsAge(t *testing.T) {
	bubble(t, func(t *testing.T, n *esphometest.Node, c *config) {
		dev := opened(t, c)
		sampled(t, dev)
		begun := time.Now()
		time.Sleep(time.Minute)
		by := sampled(t, dev)
		if r := by["temperature"]; r.Quality != device.Good || r.At.After(begun) {
			t.Errorf("a minute later the temperature is %+v", r)
		}
		if r := by["door"]; r.Quality != device.Good || time.Since(r.At) > 10*time.Second {
			t.Errorf("a minute later the contact is %+v", r)
		}
		if got := c.GoodFor(); got != c.Fresh {
			t.Errorf("readings are good for %v, and fresh is %v", got, c.Fresh)
		}
	})
}
