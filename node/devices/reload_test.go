package devices

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/device"
	"agentsite/device/guard"
	"agentsite/node"
	"agentsite/node/config"
)

// TestReload: a changed device goes to safe, is closed and opened, and goes to safe again; an
// unchanged one keeps running.
func TestReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, &bay{}, threeOf)
		defer r.end()
		r.says(t, "switch_output", pumpOn, "Value:on")
		r.says(t, "switch_output", lampOn, "Value:on")
		time.Sleep(70 * time.Second) // to get a history
		synctest.Wait()
		r.told()
		changes := make(chan agents.Change, 8)
		watching, unwatch := context.WithCancel(t.Context())
		defer unwatch()
		go r.node.Notify(watching, ann, agents.Change{Tools: true, Resources: true}, []string{agents.PointURI("lamp/on"), agents.PointURI("pump/on")}, func(c agents.Change) error {
			changes <- c
			return nil
		})
		synctest.Wait()
		<-changes // it has begun

		// The pump's limits change, soil moves to the fan's pin, the order changes.
		r.text = head + "  lamp: { max_on: 5m, pin: \"p2\", driver: relay }\n  fan: { driver: relay, pin: p3 }\n" +
			"  soil: { driver: probe, pin: p4, unit: K }\n  pump: { driver: relay, pin: p1, max_on: 1m }\n"
		if err := r.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		// Changed devices are safe, and closed before another device uses their pins; the lamp stays on.
		if got, want := r.sorted(), "p1 off, p3 off, close p3, open p3, open p4"; got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
		var told []agents.Change
		for len(changes) > 0 {
			told = append(told, <-changes)
		}
		if !slices.Contains(told, agents.Change{Tools: true, Resources: true}) || slices.Contains(told, agents.Change{URI: agents.PointURI("lamp/on")}) ||
			!slices.Contains(told, agents.Change{URI: agents.PointURI("pump/on")}) {
			t.Errorf("told of %+v", told)
		}
		if s := r.Outputs.Status(); len(s) != 3 || s[0].Output != "lamp/on" || s[0].Holder != "ann" || s[0].Left != 230*time.Second || !s[1].Safe || !s[2].Safe {
			t.Errorf("%+v", s)
		}
		r.says(t, "read_points", readAll, "Point:lamp/on Value:on", "Point:fan/on Value:off", "Point:pump/on Value:off", "Point:soil/t Value:2 Unit:K")
		r.says(t, "list_points", `{}`, "Point:pump/on Kind:switch Name: Unit: Description: Device:a relay Min:<nil> Max:<nil> Values:[] Safe:off MaxSeconds:60")
		r.says(t, "switch_output", pumpOn, "invalid", "1m")
		r.says(t, "switch_output", `{"output":"pump/on","on":true}`, "unsafe", "rests at safe")
		time.Sleep(guard.DefaultRest)
		r.says(t, "switch_output", `{"output":"pump/on","on":true}`, "Value:on")

		// The same configuration with another spelling changes nothing.
		r.told()
		r.text = strings.Replace(r.text, "pin: p1, max_on: 1m", "max_on: 1m, pin: 'p1'", 1) + "# the end\n"
		if err := r.Reload(t.Context()); err != nil || r.told() != "" {
			t.Error("a reload of the same has changed something", err)
		}
		synctest.Wait()
		for len(changes) > 0 {
			if c := <-changes; c.Tools {
				t.Error("a reload of the same is told")
			}
		}
		r.says(t, "read_points", readAll, "Point:pump/on Value:on")

		// Removed devices are closed and safe.
		r.text = head + "  soil: { driver: probe, pin: p4, unit: K }\n"
		if err := r.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got, want := r.sorted(), "p1 off, p2 off, close p1, close p2, close p3"; got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
		if o, _ := r.node.Offer(t.Context(), ann); len(o.Switch) > 0 {
			t.Error("a tool without outputs is offered")
		}
		r.says(t, "read_points", `{"points":["pump/on"]}`, "invalid")
	})
}

// TestLeaseOutlivesReloads: an unchanged output keeps its lease, and its value without a gap,
// while others are added, removed and changed.
func TestLeaseOutlivesReloads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, &bay{}, twoParts)
		defer r.end()
		r.says(t, "switch_output", lampOn, "Value:on")
		lamp := "  lamp: { driver: relay, pin: p2, max_on: 5m }\n"
		for i, beside := range []string{"", "  pump: { driver: relay, pin: p1 }\n", "  pump: { driver: relay, pin: p1, max_on: 1m }\n", "  pump: { driver: relay, pin: p3 }\n",
			"  soil: { driver: probe, pin: p3 }\n", "  fan: { driver: relay, pin: p3 }\n  pump: { driver: relay, pin: p4 }\n", "  soil: { driver: probe, pin: p1 }\n  fan: { driver: relay, pin: p3, safe: on }\n",
			"  fan: { driver: relay, pin: p1 }\n", "", "  pump: { driver: relay, pin: p1 }\n"} {
			time.Sleep(10 * time.Second)
			synctest.Wait()
			r.told()
			r.text = head + beside + lamp
			if i%2 == 1 {
				r.text = head + lamp + beside
			}
			if err := r.Reload(t.Context()); err != nil {
				t.Error(err)
			}
			if did := r.sorted(); strings.Contains(did, "p2") {
				t.Errorf("%q: %s", beside, did)
			}
		}
		r.says(t, "read_points", `{"points":["lamp/on"]}`, "Value:on")
		for _, s := range r.Outputs.Status() {
			if s.Output == "lamp/on" && (s.Holder != "ann" || s.Left != 200*time.Second) {
				t.Errorf("%+v", s)
			}
		}
		time.Sleep(200 * time.Second)
		r.says(t, "read_points", `{"points":["lamp/on"]}`, "Value:off")
	})
}

// TestReloadWhoseCloseHangs: if a driver hangs in Close, its process is replaced, so that
// another driver can use its line.
func TestReloadWhoseCloseHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, &bay{}, twoParts)
		defer r.end()
		r.says(t, "switch_output", lampOn, "Value:on")
		hangs, before := make(chan struct{}), r.processes()
		r.change(func() { r.hangs = map[string]chan struct{}{"p1": hangs} })
		r.text = head + "  lamp: { driver: relay, pin: p2, max_on: 5m }\n"
		if err := r.Reload(t.Context()); err != nil {
			t.Error(err)
		}
		if now := r.processes(); now != before+1 {
			t.Errorf("%d processes were started", now-before)
		}
		close(hangs)
		r.says(t, "read_points", readAll, "Point:lamp/on Value:off")
	})
}

// TestNotesOnAHangingDisk: while the journal cannot be written, returns to safe still get
// responses, and others are told of them.
func TestNotesOnAHangingDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, &bay{}, twoParts)
		defer r.end()
		ctx, cancel := context.WithCancel(t.Context())
		disk, notes, told, ended := make(chan struct{}), make(chan string, 10), make(chan Note, 10), make(chan struct{})
		go func() {
			NoteOutputs(ctx, r.Outputs, func(n Note) { <-disk; notes <- n.String() }, func(n Note) { told <- n })
			close(ended)
		}()
		defer func() { cancel(); <-ended }()
		r.says(t, "switch_output", strings.Replace(lampOn, "300", "1", 1), "Value:on")
		r.says(t, "switch_output", pumpOn, "Value:on")
		time.Sleep(10 * time.Second) // the lamp's lease expires, which the journal records
		for range 3 {
			begun := time.Now()
			if r.says(t, "switch_output", pumpOff, "Value:off"); time.Since(begun) > time.Second {
				t.Errorf("it took %v", time.Since(begun))
			}
		}
		if len(told) != 1 || len(notes) != 0 {
			t.Errorf("%d were told, %d noted", len(told), len(notes))
		}
		close(disk)
		synctest.Wait()
		if len(notes) != 1 || !strings.Contains(<-notes, "lamp/on") {
			t.Errorf("%d notes", len(notes))
		}
	})
}

// TestReloadWhoseInstallFails: the previous configuration stays in use, also after the next
// reload.
func TestReloadWhoseInstallFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, &bay{}, threeOf)
		defer r.end()
		r.says(t, "switch_output", lampOn, "Value:on")
		install := r.install
		r.install = func() error { return errors.New("the disk is read-only") }
		r.text = head + "  pump: { driver: relay, pin: p1, max_on: 1m }\n  lamp: { driver: relay, pin: p2, max_on: 5m }\n  fan: { driver: relay, pin: p3 }\n"
		for range 2 {
			if err := r.Reload(t.Context()); err == nil || device.AsFault(err).Kind != device.Unavailable || !strings.Contains(err.Error(), "the disk is read-only") {
				t.Fatalf("%v", err)
			}
			if p, err := r.Outputs.Policy("pump/on"); err != nil || p.MaxOn != guard.DefaultMaxOn {
				t.Errorf("%+v, %v", p, err)
			}
			time.Sleep(20 * time.Second)
			r.says(t, "read_points", readAll, "Point:lamp/on Value:on", "Point:soil/t Value:2 Unit:K")
			r.says(t, "read_points", `{"points":["fan/on"]}`, "invalid")
			r.says(t, "switch_output", pumpOn, "Value:on")
		}
		r.install = install
		if err := r.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.says(t, "switch_output", pumpOn, "invalid", "1m")
		r.says(t, "read_points", readAll, "Point:lamp/on Value:on", "Point:fan/on Value:off")
	})
}

// TestReloadKeepsThePast: a reload keeps the history of unchanged devices only.
func TestReloadKeepsThePast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, &bay{}, "  a: { driver: probe, pin: p1 }\n  b: { driver: probe, pin: p2 }\n")
		defer r.end()
		r.text = strings.Replace(r.text, "p2", "p2, scale: 3", 1)
		if err := r.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		for point, count := range map[string]int{"a/t": 3, "b/t": 1} {
			all, _, err := r.past.Summaries(point, time.Now().Add(-time.Hour), time.Now().Add(time.Minute), 1)
			if err != nil || len(all) != 1 || all[0].Count != count {
				t.Errorf("%s: %+v, want %d", point, all, count)
			}
		}
		r.says(t, "read_points", readAll, "Point:a/t Value:2 ", "Point:b/t Value:6 ")
		r.text = head + "  a: { driver: probe, pin: p1 }\n"
		if err := r.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
		all, _, _ := r.past.Summaries("b/t", time.Now().Add(-time.Hour), time.Now().Add(time.Minute), 1)
		if _, ok := r.Hub.Latest("b/t"); ok || all != nil {
			t.Error("what is gone is still remembered")
		}
	})
}

// TestReloadRefused: a file with mistakes, or with changes that need a restart, changes nothing.
func TestReloadRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, &bay{}, threeOf)
		defer r.end()
		r.says(t, "switch_output", pumpOn, "Value:on")
		r.told()
		good := r.text
		also := func(cfg, was *config.Site) error {
			if was.Name != "x" || cfg == was {
				t.Errorf("%+v, was %+v", cfg, was)
			}
			return nil
		}
		for text, want := range map[string]string{
			"site: { name: x }\ndevices:\n  pump: { driver: relay, pin: p1, max_om: 5s }\n": "test:3:35: pump: ",
			"site: [": "test:1:",
			strings.Replace(good, "name: x", "name: y", 1): "site.name ",
			good + "http: { listen: 127.0.0.1:1234 }\n":    "http ",
		} {
			r.text = text
			err := r.Reload(t.Context())
			var mistake *config.Error
			if err == nil || !strings.HasPrefix(err.Error(), want) || !errors.As(err, &mistake) && device.AsFault(err).Kind != device.Invalid {
				t.Errorf("%v, want %s", err, want)
			}
			if cfg, mistaken := r.Read(); mistaken == nil {
				if refused := r.Accepts(t.Context(), cfg, also); refused == nil || refused.Error() != err.Error() {
					t.Errorf("%v, want %v", refused, err)
				}
			}
		}
		r.text = strings.Replace(good, "pin: p1", "pin: p9", 1)
		if cfg, err := r.Read(); err != nil || r.Accepts(t.Context(), cfg, also) != nil {
			t.Error(err)
		}
		if got := r.told(); got != "" {
			t.Errorf("it has changed: %s", got)
		}
		r.says(t, "read_points", readAll, "Point:pump/on Value:on", "Point:soil/t Value:2 Unit:K")
	})
}

// TestReloadUnpublished: what is in use although a part of the reload failed is told as such.
func TestReloadUnpublished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, &bay{}, threeOf)
		defer r.end()
		synctest.Wait() // Run waits
		r.offer = func([]node.Device) error { return errors.New("no") }
		r.text = strings.Replace(r.text, "pin: p1", "pin: p9", 1)
		if err := r.Reload(t.Context()); device.AsFault(err).Kind != device.Offline {
			t.Error(err)
		}
	})
}

// TestReloadUnsafeBefore: an output that did not follow before a reload of others is no fault of it, and is not
// waited for.
func TestReloadUnsafeBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &bay{stuck: map[string]bool{}}
		r := newRig(t, b, threeOf)
		defer r.end()
		r.says(t, "switch_output", lampOn, "Value:on")
		b.change(func() { b.stuck["p2"] = true })
		r.says(t, "release_output", `{"output":"lamp/on"}`, "")
		time.Sleep(time.Minute)
		begun := time.Now()
		r.text += "  tap: { driver: relay, pin: p9 }\n"
		if err := r.Reload(t.Context()); err != nil || time.Since(begun) >= SettleTimeout {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
		b.change(func() { b.stuck["p8"] = true })
		r.text += "  fill: { driver: relay, pin: p8 }\n"
		if err := r.Reload(t.Context()); device.AsFault(err).Kind != device.Offline || !strings.Contains(err.Error(), "fill/on") || strings.Contains(err.Error(), "lamp/on") {
			t.Error(err)
		}
	})
}

// TestReloadEnded: a reload of a site that ends does not wait for ever.
func TestReloadEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, &bay{}, threeOf)
		r.end()
		if err := r.Reload(context.WithoutCancel(t.Context())); device.AsFault(err).Kind != device.Unavailable {
			t.Error(err)
		}
	})
}

// TestReloadAgents: a reload passes changed agents on, and changed devices, which agents may name;
// and the next one again if they were refused.
func TestReloadAgents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, &bay{}, threeOf)
		defer r.end()
		var passed []int
		var refusal error
		if err := r.Configure(func(cfg *config.Site) error { passed = append(passed, len(cfg.Agents)); return refusal }); err != nil {
			t.Fatal(err)
		}
		passed = nil
		reload := func(refuse error, want ...int) {
			t.Helper()
			refusal = refuse
			if err := r.Reload(t.Context()); (err != nil) != (refuse != nil) || !slices.Equal(passed, want) {
				t.Errorf("passed %v, %v; want %v", passed, err, want)
			}
		}
		reload(nil)
		r.text += "agents: { a: { kind: clock } }\n"
		reload(errors.New("refused"), 1)
		reload(nil, 1, 1)
		reload(nil, 1, 1)
		r.text = strings.Replace(r.text, "a: { kind: clock }", "", 1)
		reload(nil, 1, 1, 0)
		// Where the site is decides when the sun rises for its agents.
		was := r.text
		r.text = strings.Replace(was, "name:", "place: '52.52, 13.40', name:", 1)
		if r.text == was {
			t.Fatal(was)
		}
		reload(errors.New("refused"), 1, 1, 0, 0)
		reload(nil, 1, 1, 0, 0, 0)
		reload(nil, 1, 1, 0, 0, 0)
		r.text = head
		reload(errors.New("refused"), 1, 1, 0, 0, 0, 0)
		reload(nil, 1, 1, 0, 0, 0, 0, 0)
		reload(nil, 1, 1, 0, 0, 0, 0, 0)
	})
}
