package mqtt

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/device"
)

// offered is a site that offers what a test says, and refuses so often to list that.
type offered struct {
	agents.Site
	points  []agents.Point
	refuses int
}

func (o *offered) Offer(context.Context, agents.Principal) (*agents.Offer, error) {
	a := new(agents.Offer)
	for _, p := range o.points {
		a.Read = append(a.Read, p.Point)
	}
	return a, nil
}

func (o *offered) Points(context.Context, agents.Principal, agents.SiteRequest) (agents.PointList, error) {
	if o.refuses > 0 {
		o.refuses--
		return agents.PointList{}, device.Faultf(device.Invalid, "an output is gone")
	}
	return agents.PointList{Points: o.points}, nil
}

func (o *offered) Watch(ctx context.Context, _ agents.Principal, _ agents.WatchRequest, _ func(agents.Update) error) error {
	<-ctx.Done()
	return ctx.Err()
}

// TestReload: a site that cannot say what it has, as in the middle of a reload, is asked again for a while, on the same
// connection.
func TestReload(t *testing.T) {
	for refuses, want := range map[int]string{0: "", 5: "", 1000: "an output is gone"} {
		synctest.Test(t, func(t *testing.T) {
			site := &offered{points: []agents.Point{{Point: "a/b", Kind: device.KindState}}, refuses: refuses}
			b := newBridge(&Agent{Discovery: "homeassistant", retry: retry}, agents.Principal{}, site,
				&link{keyed: map[string]message{}, wake: make(chan struct{}, 1), longest: maxPacket})
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errors.New(""))
			defer cancel()
			began := time.Now()
			if err := b.watch(ctx); err == nil || want != "" && !strings.Contains(err.Error(), want) {
				t.Errorf("refused %d times: %v", refuses, err)
			}
			if _, told := b.link.keyed[b.discoveryTopic()]; told != (want == "") || told == (time.Since(began) < time.Minute) {
				t.Errorf("refused %d times: told %t, after %v", refuses, told, time.Since(began))
			}
		})
	}
}

// TestLess: a point that goes while the bridge runs is said to be removed, once.
func TestLess(t *testing.T) {
	site := &offered{points: []agents.Point{{Point: "a/b", Kind: device.KindState}, {Point: "a/c", Kind: device.KindState}}}
	b := newBridge(&Agent{Discovery: "homeassistant"}, agents.Principal{}, site,
		&link{keyed: map[string]message{}, wake: make(chan struct{}, 1), longest: maxPacket})
	describe := func() string {
		if _, _, _, err := b.describe(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.all()
		return string(b.link.keyed[b.discoveryTopic()].payload)
	}
	describe()
	site.points = site.points[:1]
	said := describe()
	if !strings.Contains(said, `"a.c":{"platform":"binary_sensor"}`) || !strings.Contains(said, `"a.b":{"av`) {
		t.Errorf("%s", said)
	}
	b.described([]byte(said))
	<-b.tell
	if said = describe(); strings.Contains(said, "a.c") {
		t.Errorf("%s", said)
	}
	site.points = append(site.points, agents.Point{Point: "a/c", Kind: device.KindState})
	if said = describe(); !strings.Contains(said, `"a.c":{"av`) {
		t.Errorf("%s", said)
	}
	if b.described([]byte(said)); len(b.tell) > 0 {
		t.Error("it is told again and again")
	}
}
