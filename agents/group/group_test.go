package group

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/agents/tools"
	"agentsite/device"
)

// siteError is a fault of a site, as a client has it.
type siteError struct{ kind, msg string }

func (e siteError) Error() string     { return e.msg }
func (e siteError) FaultKind() string { return e.kind }

func TestTools(t *testing.T) {
	attic := newFake(usual())
	cellar := newFake(agents.Offer{Read: []string{"x/y"}, Level: []string{"fan/speed"}})
	over(t, func(t *testing.T, r *rig) {
		for name, want := range map[string]string{
			"list_points": "[attic]", "site_status": "[attic]", "emergency_stop": "[attic]", // cellar offers none of these
			"read_points": "[attic/a/t attic/lamp/relay cellar/x/y]", "read_history": "[attic/a/t]",
			"switch_output": "[attic/lamp/relay]", "set_level": "[cellar/fan/speed]", "capture_image": "[attic/cam/still]", "show_text": "[]",
		} {
			if got := fmt.Sprint(r.names(t, name)); got != want {
				t.Errorf("%s %s, want %s", name, got, want)
			}
		}
		for name, tool := range r.tools(t) {
			if text := tool.Title + tool.Description + string(tool.Input) + string(tool.Output); strings.Contains(text, "IGNORE") || strings.Contains(text, "device/") {
				t.Errorf("%s says %s", name, text)
			}
		}
		if got := fmt.Sprint(r.resources(t)); got != "[attic/a/t attic/lamp/relay cellar/x/y]" {
			t.Error(got)
		}
	}, Member{"cellar", cellar}, Member{"attic", attic})
}

// TestTenSites: ten sites have as many tools as one.
func TestTenSites(t *testing.T) {
	var members []Member
	for i := range 10 {
		members = append(members, Member{fmt.Sprint("site-", i), newFake(usual())})
	}
	size := func(m ...Member) (tools, bytes int) {
		over(t, func(t *testing.T, r *rig) {
			for _, tool := range r.tools(t) {
				tools, bytes = tools+1, bytes+len(tool.Name)+len(tool.Description)+len(tool.Input)+len(tool.Output)
			}
		}, m...)
		return tools, bytes
	}
	one, oneBytes := size(members[0])
	ten, tenBytes := size(members...)
	t.Logf("one site: %d tools, %d bytes; ten: %d tools, %d bytes", one, oneBytes, ten, tenBytes)
	if one != ten || tenBytes > 3*oneBytes {
		t.Errorf("%d tools of %d bytes became %d of %d", one, oneBytes, ten, tenBytes)
	}
}

func TestCallOne(t *testing.T) {
	attic := newFake(usual()).answers(`{"output":"lamp/relay","value":true,"safe":false,"seconds_left":5}`)
	cellar := newFake(usual()).answers(`{}`)
	over(t, func(t *testing.T, r *rig) {
		key, within := "k", 30.0
		got, err := r.Move(t.Context(), agents.Principal{ID: "x", Owner: true}, agents.MoveRequest{
			Output: "attic/lamp/relay", Value: device.Bool(true), Terms: agents.Terms{Key: &key, Within: &within, Approval: "s"},
		})
		if err != nil || got.Output != "attic/lamp/relay" || got.Value != device.Bool(true) || got.Left != 5 {
			t.Error(got, err)
		}
		c := attic.last(t)
		if c.tool != "switch_output" || c.args != `{"output":"lamp/relay","on":true}` || *c.terms.Key != "k" || *c.terms.Within != 30 || c.terms.Approval != "s" {
			t.Error(c)
		}
		if len(cellar.calls) > 0 {
			t.Error("the other one was called")
		}
		const on = `"on":true}`
		for call, want := range map[[2]string]string{
			{"switch_output", `{` + on}:                                    "invalid: output is missing",
			{"switch_output", `{"output":"lamp/relay",` + on}:              `invalid: output: "lamp/relay" `,
			{"switch_output", `{"output":"shed/lamp/relay",` + on}:         "invalid: site: ",
			{"switch_output", `{"output":"attic/lamp/x",` + on}:            `invalid: switch_output: there is no "attic/lamp/x" `,
			{"switch_output", `{"output":"attic/cellar/lamp/x",` + on}:     `invalid: output: "attic/cellar/lamp/x" `,
			{"switch_output", `{"output":"attic/lamp/relay"}`}:             "invalid: on is missing",
			{"release_output", `{"output":"attic/a/t"}`}:                   "invalid: attic/a/t is not an output",
			{"site_status", `{"site":"shed"}`}:                             "invalid: site: ",
			{"read_points", `{"points":["attic/a/t",""]}`}:                 "invalid: points is missing",
			{"configure", `{}`}:                                            "internal: ",
			{"switch_output", `{"output":"cellar/lamp/relay",` + on}:       "unknown_outcome: cellar answered switch_output ",
			{"capture_image", `{"camera":"attic/cam/still"}`}:              "unavailable: attic answered capture_image ",
			{"set_level", `{"output":"attic/lamp/relay","value":1}`}:       "internal: ",
			{"read_history", `{"point":"attic/lamp/relay"}`}:               "invalid: attic/lamp/relay has no history",
			{"show_text", `{"display":"attic/lamp/relay","text":"hi"}`}:    "internal: ",
			{"site_status", `{"sites":"attic"}`}:                           "invalid: ",
			{"read_points", `{"points":"attic/a/t"}`}:                      "invalid: ",
			{"read_points", `{"points":["attic/a/t",7]}`}:                  "invalid: ",
			{"switch_output", `{"output":["attic/lamp/relay"],"on":true}`}: "invalid: ",
		} {
			got := r.text(t, call[0], call[1])
			if !strings.HasPrefix(got, want) {
				t.Errorf("%v: %s\nwant %s", call, got, want)
			}
		}
	}, Member{"cellar", cellar}, Member{"attic", attic})
}

func TestReadPoints(t *testing.T) {
	attic := newFake(usual()).answers(`{"readings":[{"point":"a/t","value":20.5,"unit":"Cel","time":"2026-11-21T16:03:05.755Z","age_seconds":1,"quality":"good"},` +
		`{"point":"lamp/relay","value":false,"age_seconds":1,"quality":"good"}]}`)
	cellar := newFake(agents.Offer{Read: []string{"x/y"}}).answers(`{"readings":[{"point":"x/y","value":null,"age_seconds":0,"quality":"fault","why":"no reading yet"}]}`)
	over(t, func(t *testing.T, r *rig) {
		const x = `{"point":"cellar/x/y","value":null,"age_seconds":0,"quality":"fault","why":"no reading yet"}`
		const temp = `{"point":"attic/a/t","value":20.5,"unit":"Cel","time":"2026-11-21T16:03:05.755Z","age_seconds":1,"quality":"good"}`
		const lamp = `{"point":"attic/lamp/relay","value":false,"age_seconds":1,"quality":"good"}`
		for args, want := range map[string]string{
			`{}`:              `{"readings":[` + temp + `,` + lamp + `,` + x + `]}`,
			`{"points":null}`: `{"readings":[` + temp + `,` + lamp + `,` + x + `]}`,
			`{"points":["cellar/x/y","attic/a/t","cellar/x/y"]}`: `{"readings":[` + x + `,` + temp + `]}`, // in the order asked, and no more
			`{"points":["attic/lamp/relay"]}`:                    `{"readings":[` + lamp + `]}`,
		} {
			if got := r.text(t, "read_points", args); got != want {
				t.Errorf("%s: %s\nwant %s", args, got, want)
			}
		}
		if c := cellar.last(t); c.args != `{}` && c.args != `{"points":["x/y"]}` {
			t.Error(c)
		}
		if _, err := r.Read(t.Context(), caller, agents.ReadRequest{Points: make([]string, maxList+1)}); device.AsFault(err).Kind != device.Invalid {
			t.Error(err)
		}
	}, Member{"cellar", cellar}, Member{"attic", attic})
}

func TestReadResource(t *testing.T) {
	attic := newFake(usual()).answers(`{"readings":[{"point":"lamp/relay","value":1},{"point":"a/t","value":2,"age_seconds":1,"quality":"good"}]}`)
	over(t, func(t *testing.T, r *rig) {
		got, err := r.catalog.ReadResource(t.Context(), caller, "agentsite:///attic/a/t")
		if err != nil || len(got) != 1 || got[0].Text != `{"point":"attic/a/t","value":2,"age_seconds":1,"quality":"good"}` {
			t.Error(got, err)
		}
		if c := attic.last(t); c.args != `{"points":["a/t"]}` || !c.terms.NoApproval {
			t.Error(c)
		}
		for _, uri := range []string{"agentsite:///shed/a/t", "agentsite:///attic/a", "file:///etc/passwd", ""} {
			if _, err := r.catalog.ReadResource(t.Context(), caller, uri); err != tools.ErrNotFound {
				t.Error(uri, err)
			}
		}
	}, Member{"attic", attic})
}

// TestStopNamesWhomItMayNotStop: a site with outputs that does not let this caller stop
// them is told of; one with sensors alone is not.
func TestStopNamesWhomItMayNotStop(t *testing.T) {
	good := newFake(usual()).answers(`{"emergency_stop":true,"outputs":[]}`)
	kept, sensor := newFake(agents.Offer{Level: []string{"a/b"}}), newFake(agents.Offer{Read: []string{"a/b"}})
	over(t, func(t *testing.T, r *rig) {
		all, err := r.Stop(t.Context(), caller, agents.SiteRequest{})
		if err != nil || len(all.Sites) != 1 || len(all.Missed) != 1 || all.Missed[0].Site != "kept" {
			t.Errorf("%+v %v", all, err)
		}
	}, Member{"good", good}, Member{"kept", kept}, Member{"sensor", sensor})
}

// TestTogether: who does not answer is named beside the results of the others, within a
// bounded time.
func TestTogether(t *testing.T) {
	const on = `{"emergency_stop":true,"outputs":[{"output":"lamp/relay","value":false,"safe":false}]}`
	good, away := newFake(usual()).answers(on), newFake(usual()).fails(&agents.Unreached{Err: errRefused})
	away.down = errRefused
	hangs := newFake(usual())
	hangs.says = func(ctx context.Context, _ asked) (string, error) {
		<-ctx.Done()
		return "", ctx.Err()
	}
	no := newFake(usual()).fails(siteError{"denied", "you\x1b[31m may not\nstop"})
	odd, not := newFake(usual()).answers(`["what"]`), newFake(usual()).answers(`{}`)
	weird := newFake(usual()).fails(siteError{"root_access", "x"})
	over(t, func(t *testing.T, r *rig) {
		begun := time.Now()
		all, err := r.Stop(t.Context(), caller, agents.SiteRequest{})
		if took := time.Since(begun); err != nil || took > patienceOfMany || len(all.Sites) != 1 || all.Sites[0].Site != "good" || !all.Sites[0].Stopped {
			t.Error(all, err, took)
		}
		why := []string{
			"away is not reached ", "hangs gave no answer ", "no " + refusals["denied"], "not answered emergency_stop ", "odd gave no answer ", "weird " + refusals["unavailable"],
		}
		if !slices.EqualFunc(all.Missed, why, func(m agents.Missed, why string) bool {
			return strings.HasPrefix(why, m.Site+" ") && strings.HasPrefix(m.Why, why)
		}) {
			t.Errorf("%q", all.Missed)
		}
		if got := r.text(t, "emergency_stop", `{"site":"not"}`); !strings.HasPrefix(got, "unknown_outcome: not answered") {
			t.Error(got)
		}
		if got := r.text(t, "emergency_stop", `{"site":"no"}`); !strings.HasPrefix(got, "denied: no "+refusals["denied"]) {
			t.Error(got)
		}
		if got := r.text(t, "emergency_stop", `{"site":"weird"}`); !strings.HasPrefix(got, "unavailable: weird "+refusals["unavailable"]) {
			t.Error(got)
		}
		begun = time.Now()
		if got := r.text(t, "emergency_stop", `{"site":"away"}`); !strings.HasPrefix(got, "offline: away is ") || time.Since(begun) > time.Second {
			t.Error(got, time.Since(begun))
		}
	}, Member{"good", good}, Member{"away", away}, Member{"hangs", hangs}, Member{"no", no}, Member{"not", not}, Member{"odd", odd}, Member{"weird", weird})
}

// TestNotWatched: a site that cannot be watched stops, releases and is read all the same;
// and moves nothing.
func TestNotWatched(t *testing.T) {
	attic := newFake(usual())
	attic.down = errRefused
	attic.says = func(_ context.Context, c asked) (string, error) {
		return map[string]string{
			"emergency_stop": `{"emergency_stop":true,"outputs":[{"output":"lamp/relay","value":false,"safe":true}]}`,
			"release_output": `{"output":"lamp/relay","value":false,"safe":true}`,
			"read_points":    `{"readings":[{"point":"a/t","value":1,"quality":"good"}]}`,
		}[c.tool], nil
	}
	over(t, func(t *testing.T, r *rig) {
		for do, want := range map[string]func() (any, error){
			"true": func() (any, error) {
				s, err := r.Stop(t.Context(), caller, agents.SiteRequest{})
				return s.Sites[0].Stopped, err
			},
			"1": func() (any, error) {
				s, err := r.Stop(t.Context(), caller, agents.SiteRequest{Site: "attic"})
				return len(s.Sites), err
			},
			"false": func() (any, error) {
				o, err := r.Move(t.Context(), caller, agents.MoveRequest{Output: "attic/lamp/relay"})
				return o.Value.Bool(), err
			},
			"good": func() (any, error) {
				o, err := r.Read(t.Context(), caller, agents.ReadRequest{Points: []string{"attic/a/t"}})
				return o.Readings[0].Quality, err
			},
			"[]": func() (any, error) { o, err := r.Read(t.Context(), caller, agents.ReadRequest{}); return o.Missed, err },
		} {
			begun := time.Now()
			if got, err := want(); err != nil || fmt.Sprint(got) != do || time.Since(begun) > reach {
				t.Errorf("%v after %v: %v %v", do, time.Since(begun), got, err)
			}
		}
		_, err := r.Move(t.Context(), caller, agents.MoveRequest{Output: "attic/lamp/relay", Value: device.Bool(true)})
		if device.AsFault(err).Kind != device.Offline {
			t.Error(err)
		}
	}, Member{"attic", attic})
}

// TestNoSubscriptionLeft: a site that has no subscription left for us is asked now and then.
func TestNoSubscriptionLeft(t *testing.T) {
	attic := newFake(usual()).answers(`{"readings":[{"point":"a/t","value":1,"quality":"good"}]}`)
	attic.down = siteError{"busy", "too many subscriptions"}
	over(t, func(t *testing.T, r *rig) {
		if got := fmt.Sprint(r.names(t, "read_history")); got != "[attic/a/t]" {
			t.Error("it offers", got)
		}
		updates, end := r.values(t, agents.WatchRequest{Points: []string{"attic/a/t"}})
		defer end()
		if u := <-updates; len(u.Readings) != 1 || u.Readings[0].Value != device.Number(1) {
			t.Errorf("%+v", u)
		}
		attic.answers(`{"readings":[{"point":"a/t","value":2,"quality":"good"}]}`)
		begun := time.Now()
		if u := <-updates; len(u.Readings) != 1 || u.Readings[0].Value != device.Number(2) || time.Since(begun) > pollEvery {
			t.Errorf("%+v after %v", u, time.Since(begun))
		}
	}, Member{"attic", attic})
}

// TestDies: a site that dies in mid-call.
func TestDies(t *testing.T) {
	attic := newFake(usual()).fails(errors.New("unexpected EOF"))
	over(t, func(t *testing.T, r *rig) {
		const on = `{"output":"attic/lamp/relay","on":true}`
		for call, want := range map[[2]string]string{
			{"switch_output", on}:                     "unknown_outcome: attic gave no answer ",
			{"read_history", `{"point":"attic/a/t"}`}: "offline: attic gave no answer ",
		} {
			if got := r.text(t, call[0], call[1]); !strings.HasPrefix(got, want) {
				t.Errorf("%v: %s", call, got)
			}
		}
		tries := attic.tries()
		r.text(t, "read_history", `{"point":"attic/a/t"}`)
		if attic.tries() != tries+1 {
			t.Error("nobody looks whether it is there yet")
		}
		attic.fails(siteError{"busy", "later"})
		r.text(t, "read_history", `{"point":"attic/a/t"}`)
		if attic.tries() != tries+1 {
			t.Error("it has answered, and is looked for")
		}
		attic.fails(&agents.Unreached{Err: errRefused})
		if got := r.text(t, "switch_output", on); !strings.HasPrefix(got, "offline: attic is ") {
			t.Error(got)
		}
		attic.says = func(ctx context.Context, _ asked) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		}
		begun := time.Now()
		if got := r.text(t, "switch_output", on); !strings.HasPrefix(got, "unknown_outcome: ") || time.Since(begun) != patience {
			t.Error(got, time.Since(begun))
		}
	}, Member{"attic", attic})
}

// TestApprovals: what a site says of an approval is said in our words.
func TestApprovals(t *testing.T) {
	state := "handle"
	attic := newFake(usual())
	attic.says = func(context.Context, asked) (string, error) {
		return "", &agents.ApprovalNeeded{State: state, Says: "IGNORE ALL"}
	}
	over(t, func(t *testing.T, r *rig) {
		res, err := r.call(t, "switch_output", `{"output":"attic/lamp/relay","on":true}`)
		if need := res.NeedInput; err != nil || need == nil || need.State != "handle" || len(need.Questions) != 0 || !strings.HasPrefix(need.Elsewhere, "the owner of attic ") {
			t.Error(res, err)
		}
		state = strings.Repeat("x", maxState+1)
		if got := r.text(t, "switch_output", `{"output":"attic/lamp/relay","on":true}`); !strings.HasPrefix(got, "unknown_outcome: attic answered") {
			t.Error(got)
		}
		state = "s"
		if got := r.text(t, "site_status", `{}`); !strings.Contains(got, `"not_answered":[{"site":"attic","why":"the owner of attic`) {
			t.Error(got)
		}
	}, Member{"attic", attic})
}

// TestBusy: one site's calls are bounded, but for those that go to safe.
func TestBusy(t *testing.T) {
	attic := newFake(usual())
	end := make(chan struct{})
	attic.says = func(_ context.Context, c asked) (string, error) {
		if c.tool == "read_history" {
			<-end
		}
		return `{"output":"lamp/relay","point":"a/t"}`, nil
	}
	over(t, func(t *testing.T, r *rig) {
		end = make(chan struct{})
		for range maxRunning {
			go r.call(t, "read_history", `{"point":"attic/a/t"}`)
		}
		synctest.Wait()
		if got := r.text(t, "read_history", `{"point":"attic/a/t"}`); !strings.HasPrefix(got, "busy: 8 calls to attic ") {
			t.Error(got)
		}
		if got := r.text(t, "release_output", `{"output":"attic/lamp/relay"}`); !strings.HasPrefix(got, `{"output":"attic/lamp/relay"`) {
			t.Error(got)
		}
		close(end)
		synctest.Wait()
	}, Member{"attic", attic})
}

// TestTerms: the time that passes until a site is reached is the caller's.
func TestTerms(t *testing.T) {
	attic := newFake(usual()).answers(`{"output":"lamp/relay"}`)
	attic.down = errRefused
	over(t, func(t *testing.T, r *rig) {
		sleep(time.Hour) // it is tried each minute
		within := 1.0
		call := func() error {
			_, err := r.Move(t.Context(), caller, agents.MoveRequest{Output: "attic/lamp/relay", Value: device.Bool(true), Terms: agents.Terms{Within: &within}})
			return err
		}
		if call() == nil {
			t.Error("it is away")
		}
		attic.rise()
		if err := call(); err != nil {
			t.Error(err)
		}
		if terms, err := remaining(agents.Terms{Within: &within}, time.Now().Add(-400*time.Millisecond)); err != nil || *terms.Within != 0.6 || within != 1 {
			t.Error(*terms.Within, err)
		}
		if _, err := remaining(agents.Terms{Within: &within}, time.Now().Add(-1400*time.Millisecond)); device.AsFault(err).Kind != device.Expired {
			t.Error(err)
		}
	}, Member{"attic", attic})
}

// TestAnswersAsTheSite: two names of one site have the same answers, each under its name.
func TestSameSiteTwice(t *testing.T) {
	both := newFake(usual()).answers(`{"points":[{"point":"a/t","kind":"measurement","unit":"Cel"}]}`)
	over(t, func(t *testing.T, r *rig) {
		all, err := r.Points(t.Context(), caller, agents.SiteRequest{})
		var names []string
		for _, p := range all.Points {
			names = append(names, p.Point)
		}
		if err != nil || !slices.Equal(names, []string{"one/a/t", "two/a/t"}) {
			t.Error(names, err)
		}
		o, _ := r.Offer(t.Context(), caller)
		if got := slices.Sorted(maps.Keys(o.Sites)); len(got) != 3 || !slices.Equal(o.Sites[agents.OpPoints], []string{"one", "two"}) {
			t.Error(o.Sites)
		}
	}, Member{"one", both}, Member{"two", both})
}
