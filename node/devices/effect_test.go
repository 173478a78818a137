package devices

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/device"
)

const wellPump = "  pump: { driver: relay, pin: p1, max_on: 5m, expect: { point: soil/t, above: 3 V, within: 5s, else: latch } }\n" +
	"  soil: { driver: probe, pin: p3, every: 1s }\n"

// TestEffect: a pump whose water does not come is safe after five seconds, and what is told of it says so: the
// answer, the readings, the notes. One whose water comes goes on until it ceases.
func TestEffect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, &bay{}, wellPump)
		defer r.end()
		ctx, cancel := context.WithCancel(t.Context())
		var notes []Note
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			NoteOutputs(ctx, r.Outputs, func(n Note) { notes = append(notes, n) })
		}()
		stands := func(v bool, effect, why string) {
			t.Helper()
			synctest.Wait()
			r.mu.Lock()
			at := r.at["p1"]
			r.mu.Unlock()
			s, _ := r.Outputs.StatusOf("pump/on")
			if at != device.Bool(v) || string(s.Effect) != effect || s.Why != why {
				t.Errorf("the pump is at %v, effect %q, %q; want %v, %q, %q", at, s.Effect, s.Why, v, effect, why)
			}
		}
		flows := func(volts float64) { r.change(func() { r.at["p3"] = device.Number(volts) }) }

		flows(4)
		r.says(t, "switch_output", pumpOn, "Value:on", "Effect:not confirmed")
		time.Sleep(3 * time.Second)
		stands(true, "confirmed", "")
		time.Sleep(time.Minute)
		stands(true, "confirmed", "")
		r.says(t, "list_points", `{}`, "expects soil/t from 3 in 5s")
		r.says(t, "site_status", `{}`, "Effect:confirmed")
		flows(2)
		time.Sleep(5*time.Second + 200*time.Millisecond)
		stands(false, "failed", "the effect that it has to have did not come")
		time.Sleep(time.Minute)
		r.says(t, "switch_output", pumpOn, "unsafe: ", "soil/t", "agentsite reset")
		if err := r.Outputs.Reset(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.says(t, "switch_output", pumpOn, "Value:on", "Effect:not confirmed")
		time.Sleep(5*time.Second - time.Millisecond)
		stands(true, "not confirmed", "")
		time.Sleep(201 * time.Millisecond)
		stands(false, "failed", "the effect that it has to have did not come")
		cancel()
		<-ended
		var said []string
		for _, n := range notes {
			said = append(said, n.String())
		}
		back := "pump/on went to safe: the effect that it has to have did not come"
		if want := []string{"the effect of pump/on: confirmed", back, back}; !slices.Equal(said, want) {
			t.Errorf("%q, want %q", said, want)
		}
	})
}

// TestEffectComesAndGoes: where the output stays as it is, each is noted once in a trip, however often it changes.
func TestEffectComesAndGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, &bay{}, strings.Replace(wellPump, "latch", "alarm", 1))
		defer r.end()
		ctx, cancel := context.WithCancel(t.Context())
		var said []string
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			NoteOutputs(ctx, r.Outputs, func(n Note) { said = append(said, n.String()) })
		}()
		synctest.Wait()
		for range 2 {
			r.says(t, "switch_output", pumpOn, "Value:on")
			for range 4 {
				r.change(func() { r.at["p3"] = device.Number(4) })
				time.Sleep(4 * time.Second)
				r.change(func() { r.at["p3"] = device.Number(2) })
				time.Sleep(8 * time.Second)
			}
			r.says(t, "release_output", `{"output":"pump/on"}`, "Value:off")
			time.Sleep(time.Minute)
		}
		cancel()
		<-ended
		trip := []string{"the effect of pump/on: confirmed", "the effect of pump/on: failed"}
		if want := slices.Concat(trip, trip); !slices.Equal(said, want) {
			t.Errorf("%q, want %q", said, want)
		}
	})
}
