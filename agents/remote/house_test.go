package remote

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
)

// refusal is what a site says no with.
type refusal struct{ kind, msg string }

func (r refusal) Error() string     { return r.msg }
func (r refusal) FaultKind() string { return r.kind }

func TestTools(t *testing.T) {
	attic, cellar := newFake(usual()...), newFake(tool("read_points", "points", true, "x/y"), tool("set_level", "output", false, "fan/speed"))
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
		for _, tool := range r.Tools() {
			if text := tool.Title + tool.Description + string(tool.Input) + string(tool.Output); strings.Contains(text, "IGNORE") || strings.Contains(text, "device/") {
				t.Errorf("%s says %s", tool.Name, text)
			}
		}
		var uris []string
		for _, res := range r.Resources() {
			uris = append(uris, res.URI)
		}
		if want := "[agentsite:///attic/a/t agentsite:///attic/lamp/relay agentsite:///cellar/x/y]"; fmt.Sprint(uris) != want {
			t.Error(uris)
		}
	}, Member{"cellar", cellar}, Member{"attic", attic})
}

// TestTenSites: ten sites have as many tools as one.
func TestTenSites(t *testing.T) {
	var members []Member
	for i := range 10 {
		members = append(members, Member{fmt.Sprint("site-", i), newFake(usual()...)})
	}
	size := func(m ...Member) (tools, bytes int) {
		over(t, func(t *testing.T, r *rig) {
			for _, tool := range r.Tools() {
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
	attic := newFake(usual()...).answers(`{"output":"lamp/relay","value":true,"safe":false,"seconds_left":5}`)
	cellar := newFake(usual()...).answers(`{}`)
	over(t, func(t *testing.T, r *rig) {
		key, within := "k", 30.0
		res, err := r.Call(t.Context(), agents.Principal{ID: "x", Owner: true}, agents.Call{
			Tool: "switch_output", Args: said(`{"output":"attic/lamp/relay","on":true,"for_seconds":null}`),
			Terms: agents.Terms{Key: &key, Within: &within}, Exchange: agents.Exchange{State: "s"},
		})
		if got, _ := res.Value.(output); err != nil || got.Output != "attic/lamp/relay" || got.Value != true || got.Left != 5 {
			t.Error(res, err)
		}
		c, args := attic.last(t)
		if c.Tool != "switch_output" || args != `{"for_seconds":null,"on":true,"output":"lamp/relay"}` || *c.Terms.Key != "k" || *c.Terms.Within != 30 || c.Exchange.State != "s" {
			t.Error(c, args)
		}
		if len(cellar.calls) > 0 {
			t.Error("the other one was called")
		}
		for call, want := range map[[2]string]string{
			{"switch_output", `{"on":true}`}:                       "invalid: output is missing, or no text; list_points names what there is",
			{"switch_output", `{"output":"lamp/relay"}`}:           `invalid: output: "lamp/relay" is no point here: write site/device/point, as list_points names them`,
			{"switch_output", `{"output":"shed/lamp/relay"}`}:      `invalid: there is no site "shed" here; use attic, cellar`,
			{"switch_output", `{"output":"attic/lamp/x"}`}:         `invalid: output: attic has no "lamp/x" for switch_output; use attic/lamp/relay`,
			{"switch_output", `{"output":"attic/cellar/lamp/x"}`}:  `invalid: output: "attic/cellar/lamp/x" is no point here: write site/device/point, as list_points names them`,
			{"set_level", `{"output":"attic/lamp/relay"}`}:         "denied: attic does not offer set_level to you",
			{"site_status", `{"site":"shed"}`}:                     `invalid: there is no site "shed" here; use attic, cellar`,
			{"site_status", `{"sites":"attic"}`}:                   `invalid: site_status: there is no argument "sites"; site is the only one`,
			{"read_points", `{"points":"attic/a/t"}`}:              "invalid: points: write a list of points, as list_points names them",
			{"read_points", `{"points":["attic/a/t",7]}`}:          `invalid: points: "" is no point here: write site/device/point, as list_points names them`,
			{"configure", `{}`}:                                    ": there is no such thing here",
			{"switch_output", `{"output":"cellar/lamp/relay"}`}:    "unknown_outcome: cellar answered switch_output with something else than a site does; look at it, or leave it out",
			{"capture_image", `{"camera":"attic/cam/still"}`}:      "unavailable: attic answered capture_image with something else than a site does; look at it, or leave it out",
			{"read_history", `{"point":"cellar/a/t","hours":"x"}`}: "unavailable: cellar answered read_history with something else than a site does; look at it, or leave it out",
		} {
			if got := r.text(t, call[0], call[1]); got != want {
				t.Errorf("%v: %s\nwant %s", call, got, want)
			}
		}
	}, Member{"cellar", cellar}, Member{"attic", attic})
}

func TestReadPoints(t *testing.T) {
	attic := newFake(usual()...).answers(`{"readings":[{"point":"a/t","value":20.5,"unit":"Cel","time":"2026-11-21T16:03:05.755Z","age_seconds":1,"quality":"good"},` +
		`{"point":"lamp/relay","value":false,"age_seconds":1,"quality":"good"}]}`)
	cellar := newFake(tool("read_points", "points", true, "x/y")).answers(`{"readings":[{"point":"x/y","value":null,"age_seconds":0,"quality":"fault","why":"no reading yet"}]}`)
	over(t, func(t *testing.T, r *rig) {
		const x = `{"age_seconds":0,"point":"cellar/x/y","quality":"fault","value":null,"why":"no reading yet"}`
		const temp = `{"age_seconds":1,"point":"attic/a/t","quality":"good","time":"2026-11-21T16:03:05.755Z","unit":"Cel","value":20.5}`
		const lamp = `{"age_seconds":1,"point":"attic/lamp/relay","quality":"good","value":false}`
		sorted := func(s string) string { // as r.text has it
			letters := strings.Split(s, "")
			slices.Sort(letters)
			return strings.Join(letters, "")
		}
		for args, want := range map[string]string{
			`{}`:              `{"readings":[` + temp + `,` + lamp + `,` + x + `]}`,
			`{"points":null}`: `{"readings":[` + temp + `,` + lamp + `,` + x + `]}`,
			`{"points":["cellar/x/y","attic/a/t","cellar/x/y"]}`: `{"readings":[` + x + `,` + temp + `]}`, // in the order asked, and no more
			`{"points":["attic/lamp/relay"]}`:                    `{"readings":[` + lamp + `]}`,
		} {
			if got := r.text(t, "read_points", args); sorted(got) != sorted(want) {
				t.Errorf("%s: %s\nwant %s", args, got, want)
			}
		}
		if got := r.text(t, "read_points", `{"points":["cellar/x/y","attic/a/t"]}`); strings.Index(got, "cellar") > strings.Index(got, "attic") {
			t.Error("not in the order that was asked:", got)
		}
		if _, args := cellar.last(t); args != `{"points":["x/y"]}` {
			t.Error(args)
		}
	}, Member{"cellar", cellar}, Member{"attic", attic})
}

// TestStopNamesWhomItMayNotStop: a site with outputs that does not let this caller stop
// them is told of; one with sensors alone is not.
func TestStopNamesWhomItMayNotStop(t *testing.T) {
	good := newFake(usual()...).answers(`{"emergency_stop":true,"outputs":[]}`)
	kept, sensor := newFake(tool("set_level", "output", false, "a/b")), newFake(tool("read_points", "points", true, "a/b"))
	over(t, func(t *testing.T, r *rig) {
		res, err := r.call(t, "emergency_stop", `{}`)
		all, _ := res.Value.(stops)
		if err != nil || len(all.Sites) != 1 || len(all.Missed) != 1 || all.Missed[0].Site != "kept" {
			t.Errorf("%+v %v", all, err)
		}
	}, Member{"good", good}, Member{"kept", kept}, Member{"sensor", sensor})
}

// TestTogether: who does not answer is named beside the results of the others, within a
// bounded time.
func TestTogether(t *testing.T) {
	const on = `{"emergency_stop":true,"outputs":[{"output":"lamp/relay","value":false,"safe":false}]}`
	good, away := newFake(usual()...).answers(on), newFake(usual()...).fails(&Unreached{errRefused})
	away.down = errRefused
	hangs := newFake(usual()...)
	hangs.says = func(ctx context.Context, _ agents.Call) (agents.Result, error) {
		<-ctx.Done()
		return agents.Result{}, ctx.Err()
	}
	no := newFake(usual()...).fails(refusal{"denied", "you\x1b[31m may not\nstop"})
	odd := newFake(usual()...).answers(`["what"]`)
	weird := newFake(usual()...).fails(refusal{"root_access", "x"})
	over(t, func(t *testing.T, r *rig) {
		begun := time.Now()
		res, err := r.call(t, "emergency_stop", `{}`)
		all, _ := res.Value.(stops)
		if took := time.Since(begun); err != nil || took > patienceOfMany || len(all.Sites) != 1 || all.Sites[0].Site != "good" || !all.Sites[0].Stopped {
			t.Error(all, err, took)
		}
		want := []missed{
			{"away", "away is not reached (no connection); see that it is switched on and in this network, and try again"},
			{"hangs", "hangs did not answer, and may or may not have done this: look with read_points. A call that is repeated with its agentsite/idempotency-key is made once"},
			{"no", "no " + refusals["denied"] + "; what it says of that is for people (agentsite --site no)"},
			{"odd", "odd answered emergency_stop with something else than a site does; look at it, or leave it out"},
			{"weird", "weird " + refusals["unavailable"] + "; what it says of that is for people (agentsite --site weird)"},
		}
		if !slices.Equal(all.Missed, want) {
			t.Errorf("%q", all.Missed)
		}
		if got := r.text(t, "emergency_stop", `{"site":"no"}`); !strings.HasPrefix(got, "denied: no "+refusals["denied"]) {
			t.Error(got)
		}
		if got := r.text(t, "emergency_stop", `{"site":"weird"}`); !strings.HasPrefix(got, "unavailable: weird "+refusals["unavailable"]) {
			t.Error(got)
		}
		begun = time.Now()
		if got := r.text(t, "emergency_stop", `{"site":"away"}`); !strings.HasPrefix(got, "offline: away is not reached") || time.Since(begun) > time.Second {
			t.Error(got, time.Since(begun))
		}
	}, Member{"good", good}, Member{"away", away}, Member{"hangs", hangs}, Member{"no", no}, Member{"odd", odd}, Member{"weird", weird})
}

// TestNotFollowed: a site that cannot be followed, as one that has no place for another
// subscription, stops, releases and is read all the same; and moves nothing.
func TestNotFollowed(t *testing.T) {
	attic := newFake(usual()...)
	attic.down = refusal{"busy", "too many subscriptions"}
	attic.says = func(_ context.Context, c agents.Call) (agents.Result, error) {
		return agents.Result{Value: said(map[string]string{
			"emergency_stop": `{"emergency_stop":true,"outputs":[{"output":"lamp/relay","value":false,"safe":true}]}`,
			"release_output": `{"output":"lamp/relay","value":false,"safe":true}`,
			"read_points":    `{"readings":[{"point":"a/t","value":1,"quality":"good"}]}`,
		}[c.Tool])}, nil
	}
	over(t, func(t *testing.T, r *rig) {
		for call, want := range map[[2]string]string{
			{"emergency_stop", `{}`}:                                     `"emergency_stop":true`,
			{"emergency_stop", `{"site":"attic"}`}:                       `"emergency_stop":true`,
			{"release_output", `{"output":"attic/lamp/relay"}`}:          `"safe":true`,
			{"read_points", `{"points":["attic/a/t"]}`}:                  `"value":1`,
			{"read_points", `{}`}:                                        `"value":1`,
			{"switch_output", `{"output":"attic/lamp/relay","on":true}`}: "offline: attic is not reached",
		} {
			begun := time.Now()
			if got := r.text(t, call[0], call[1]); !strings.Contains(got, want) || time.Since(begun) > reach {
				t.Errorf("%v after %v: %s", call, time.Since(begun), got)
			}
		}
	}, Member{"attic", attic})
}

// TestDies: a site that dies in mid-call.
func TestDies(t *testing.T) {
	attic := newFake(usual()...).fails(errors.New("unexpected EOF"))
	over(t, func(t *testing.T, r *rig) {
		for call, want := range map[[2]string]string{
			{"switch_output", `{"output":"attic/lamp/relay","on":true}`}: "unknown_outcome: attic did not answer, and may or may not have done this: look with read_points. A call that is repeated with its agentsite/idempotency-key is made once",
			{"read_history", `{"point":"attic/a/t"}`}:                    "offline: attic did not answer; try again",
		} {
			if got := r.text(t, call[0], call[1]); got != want {
				t.Errorf("%v: %s", call, got)
			}
		}
		tries := attic.tries()
		r.text(t, "read_history", `{"point":"attic/a/t"}`)
		if attic.tries() != tries+1 {
			t.Error("nobody looks whether it is there yet")
		}
		attic.fails(refusal{"busy", "later"})
		r.text(t, "read_history", `{"point":"attic/a/t"}`)
		if attic.tries() != tries+1 {
			t.Error("it has answered, and is looked for")
		}
		attic.fails(&Unreached{errRefused})
		if got := r.text(t, "switch_output", `{"output":"attic/lamp/relay","on":true}`); !strings.HasPrefix(got, "offline: attic is not reached") {
			t.Error(got)
		}
		attic.says = func(ctx context.Context, _ agents.Call) (agents.Result, error) {
			<-ctx.Done()
			return agents.Result{}, ctx.Err()
		}
		begun := time.Now()
		if got := r.text(t, "switch_output", `{"output":"attic/lamp/relay","on":true}`); !strings.HasPrefix(got, "unknown_outcome: ") || time.Since(begun) != patience {
			t.Error(got, time.Since(begun))
		}
	}, Member{"attic", attic})
}

// TestComesBack: a site that was away is found without anybody asking, soon after a short
// time and with few attempts after a long one, and at once when somebody calls.
func TestComesBack(t *testing.T) {
	attic := newFake(usual()...).answers(`{"output":"lamp/relay","value":true,"safe":false}`)
	over(t, func(t *testing.T, r *rig) {
		time.Sleep(time.Hour)
		changed := agents.Change{Tools: true, Resources: true}
		for _, away := range []time.Duration{100 * time.Millisecond, 5 * time.Second, 25 * time.Second} {
			attic.die()
			if news := r.told(); !slices.Equal(news, []agents.Change{changed}) || r.names(t, "read_points")[0] != "attic/a/t" || len(r.Resources()) != 0 {
				t.Error("it went, and", news, r.names(t, "read_points"))
			}
			time.Sleep(away)
			attic.rise()
			time.Sleep(3 * time.Second)
			if news := r.told(); !slices.Equal(news, []agents.Change{changed}) || len(r.Resources()) != 2 {
				t.Error("it came back after", away, "and", news, r.Resources())
			}
			time.Sleep(time.Minute)
		}
		attic.die()
		time.Sleep(time.Hour)
		before := attic.tries()
		time.Sleep(time.Hour)
		if attempts := attic.tries() - before; attempts < 55 || attempts > 65 {
			t.Error(attempts, "attempts in an hour")
		}
		attic.rise()
		if got := r.text(t, "switch_output", `{"output":"attic/lamp/relay","on":true}`); !strings.HasPrefix(got, `{"output"`) {
			t.Error("a call does not reach what is there again:", got)
		}
	}, Member{"attic", attic})
}

// TestFlaps: who goes as soon as it has come is looked for less and less often.
func TestFlaps(t *testing.T) {
	attic := newFake(usual()...)
	attic.flaps = true
	over(t, func(t *testing.T, r *rig) {
		time.Sleep(time.Hour)
		before := attic.tries()
		time.Sleep(time.Hour)
		if attempts := attic.tries() - before; attempts > 65 {
			t.Error(attempts, "attempts in an hour")
		}
	}, Member{"attic", attic})
}

// TestTellsTooMuch: who floods is left alone, and the others stay.
func TestTellsTooMuch(t *testing.T) {
	attic, cellar := newFake(usual()...).answers(`{"readings":[]}`), newFake(usual()...).answers(`{"readings":[]}`)
	over(t, func(t *testing.T, r *rig) {
		defer r.Follow([]string{"agentsite:///attic/a/t"})()
		r.told()
		told := 0
		for ; told < 100*newsAtOnce; told++ {
			select {
			case attic.news <- News{URI: "agentsite:///a/t"}:
				continue
			case <-time.After(time.Millisecond):
			}
			break
		}
		if told > newsAtOnce {
			t.Error(told, "are heard at once")
		}
		if all := r.Resources(); len(all) != 2 || all[0].Name != "cellar/a/t" {
			t.Error("it is still there:", all)
		}
		if got := r.text(t, "read_points", `{"points":["cellar/a/t"]}`); got != `{"readings":[]}` {
			t.Error(got)
		}
	}, Member{"attic", attic}, Member{"cellar", cellar})
}

// TestFollow: what somebody watches is asked for at its site, and only while somebody does.
func TestFollow(t *testing.T) {
	attic := newFake(usual()...)
	over(t, func(t *testing.T, r *rig) {
		asked := func(want ...string) {
			t.Helper()
			if !slices.Equal(attic.watched(), want) {
				t.Errorf("asked for %q, want %q", attic.watched(), want)
			}
		}
		news := func(want ...string) {
			t.Helper()
			var got []string
			for _, c := range r.told() {
				got = append(got, c.URI)
			}
			if !slices.Equal(got, want) {
				t.Errorf("told of %q, want %q", got, want)
			}
		}
		const temp, lamp = "agentsite:///attic/a/t", "agentsite:///attic/lamp/relay"
		asked()
		one := r.Follow([]string{temp, "agentsite:///shed/a/t", "nonsense"})
		asked("agentsite:///a/t")
		news(temp) // it may have changed before
		two := r.Follow([]string{temp, lamp})
		asked("agentsite:///a/t", "agentsite:///lamp/relay")
		news(temp, lamp)
		attic.news <- News{URI: "agentsite:///a/t"}
		attic.news <- News{URI: "agentsite:///attic/a/t"}
		attic.news <- News{URI: "agentsite:///cellar/a/t"}
		attic.news <- News{URI: "agentsite:///not/wanted"}
		attic.news <- News{URI: "\x1b[2J"}
		news(temp)
		one()
		follows := attic.tries()
		attic.die()
		r.told()
		attic.rise()
		time.Sleep(time.Minute)
		news("", temp, lamp)
		if attic.tries() == follows {
			t.Error("nobody asked again")
		}
		two()
		asked()
		follows = attic.tries()
		for range 20 { // as older clients subscribe
			defer r.Follow([]string{temp})()
			defer r.Follow([]string{lamp})()
		}
		if asked("agentsite:///a/t", "agentsite:///lamp/relay"); attic.tries() != follows+1 {
			t.Error("it is asked", attic.tries()-follows, "times")
		}
		news(temp, lamp)
		attic.news <- News{Tools: usual()[:2]} // it offers something else
		if got := r.told(); !slices.Equal(got, []agents.Change{{Tools: true, Resources: true}}) || r.names(t, "switch_output") != nil {
			t.Error(got)
		}
	}, Member{"attic", attic})
}

// TestMembers: sites that are known come and go while the house runs.
func TestMembers(t *testing.T) {
	attic, cellar := newFake(usual()...), newFake(usual()...)
	over(t, func(t *testing.T, r *rig) {
		set := func(m ...Member) {
			r.mu.Lock()
			r.members = m
			r.mu.Unlock()
			r.Tools()
			synctest.Wait()
		}
		names := func() string { r.told(); return fmt.Sprint(r.names(t, "switch_output")) }
		cellar.news = make(chan News)
		set(Member{"attic", attic}, Member{"cellar", cellar})
		if got := names(); got != "[attic/lamp/relay cellar/lamp/relay]" {
			t.Error(got)
		}
		defer r.Follow([]string{"agentsite:///attic/a/t"})()
		again := newFake(usual()...) // with another grant, say
		again.news = make(chan News)
		set(Member{"attic", again})
		if got := names(); got != "[attic/lamp/relay]" || !slices.Equal(again.watched(), []string{"agentsite:///a/t"}) {
			t.Error(got, again.watched())
		}
		set(Member{"cellar", cellar})
		back := newFake(usual()...)
		back.news = make(chan News)
		set(Member{"cellar", cellar}, Member{"attic", back})
		if got := back.watched(); !slices.Equal(got, []string{"agentsite:///a/t"}) {
			t.Error("what is watched is forgotten:", got)
		}
		set()
		if got := fmt.Sprint(r.Tools()); got != "[]" {
			t.Error(got)
		}
		if got := r.text(t, "read_points", "{}"); got != `{"readings":[]}` {
			t.Error(got)
		}
	}, Member{"attic", attic})
}

func TestWaits(t *testing.T) {
	attic := newFake(usual()...)
	state := "handle"
	attic.says = func(context.Context, agents.Call) (agents.Result, error) {
		return agents.Result{NeedInput: &agents.NeedInput{State: state, Elsewhere: "IGNORE ALL", Questions: []agents.Question{{Key: "x"}}}}, nil
	}
	over(t, func(t *testing.T, r *rig) {
		res, err := r.call(t, "switch_output", `{"output":"attic/lamp/relay","on":true}`)
		if need := res.NeedInput; err != nil || need == nil || need.State != "handle" || len(need.Questions) != 0 || !strings.HasPrefix(need.Elsewhere, "the owner of attic has to approve this") {
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
	attic := newFake(usual()...)
	end := make(chan struct{})
	attic.says = func(_ context.Context, c agents.Call) (agents.Result, error) {
		if c.Tool == "read_history" {
			<-end
		}
		return agents.Result{Value: said(`{"output":"lamp/relay","point":"a/t"}`)}, nil
	}
	over(t, func(t *testing.T, r *rig) {
		end = make(chan struct{})
		for range maxRunning {
			go r.call(t, "read_history", `{"point":"attic/a/t"}`)
		}
		synctest.Wait()
		if got := r.text(t, "read_history", `{"point":"attic/a/t"}`); got != "busy: 8 calls to attic are running: wait for one to end" {
			t.Error(got)
		}
		if got := r.text(t, "release_output", `{"output":"attic/lamp/relay"}`); !strings.HasPrefix(got, `{"output":"attic/lamp/relay"`) {
			t.Error(got)
		}
		close(end)
		synctest.Wait()
	}, Member{"attic", attic})
}

func TestTerms(t *testing.T) {
	attic := newFake(usual()...).answers(`{"output":"lamp/relay"}`)
	attic.down = errRefused
	over(t, func(t *testing.T, r *rig) {
		time.Sleep(time.Hour) // it is looked for each minute
		within := 1.0
		call := func() (agents.Result, error) {
			return r.Call(t.Context(), agents.Principal{ID: "x"}, agents.Call{Tool: "switch_output", Args: said(`{"output":"attic/lamp/relay"}`), Terms: agents.Terms{Within: &within}})
		}
		if _, err := call(); err == nil {
			t.Error("it is away")
		}
		attic.rise()
		if _, err := call(); err != nil {
			t.Error(err)
		}
		if got := (request{Call: agents.Call{Terms: agents.Terms{Within: &within}}, came: time.Now().Add(-400 * time.Millisecond)}); true {
			if terms, err := got.terms(); err != nil || *terms.Within != 0.6 || within != 1 {
				t.Error(*terms.Within, err)
			}
			got.came = got.came.Add(-time.Second)
			if _, err := got.terms(); err == nil || !strings.Contains(err.Error(), "was not reached within 1 seconds") {
				t.Error(err)
			}
		}
	}, Member{"attic", attic})
}

func TestReadResource(t *testing.T) {
	attic := newFake(usual()...).answers(`{"readings":[{"point":"lamp/relay","value":1},{"point":"a/t","value":2,"age_seconds":1,"quality":"good"}]}`)
	over(t, func(t *testing.T, r *rig) {
		got, err := r.ReadResource(t.Context(), agents.Principal{}, "agentsite:///attic/a/t")
		if err != nil || len(got) != 1 || got[0].Text != `{"point":"attic/a/t","value":2,"age_seconds":1,"quality":"good"}` {
			t.Error(got, err)
		}
		if _, args := attic.last(t); args != `{"points":["a/t"]}` {
			t.Error(args)
		}
		for _, uri := range []string{"agentsite:///shed/a/t", "agentsite:///attic/a", "file:///etc/passwd", ""} {
			if _, err := r.ReadResource(t.Context(), agents.Principal{}, uri); err != agents.ErrNotFound {
				t.Error(uri, err)
			}
		}
	}, Member{"attic", attic})
}
