package devicetest

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/device"
)

func TestAGoodDevicePasses(t *testing.T) {
	var f *fake
	Options{Level: func(point string) device.Value { return f.level(point) }, Dip: func() { f.dip() }}.Run(t, func(*testing.T) device.Device {
		f = newFake()
		return f
	})
}

// TestWhatADeviceLacksIsSkipped runs the suite on a device without any verb.
func TestWhatADeviceLacksIsSkipped(t *testing.T) {
	for _, c := range checks {
		err := c.run(t.Context(), subject{Device: bare{}})
		if _, skipped := errors.AsType[skip](err); err != nil && !skipped {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

type bare struct{}

func (bare) Describe() device.Description { return device.Description{} }
func (bare) Close() error                 { return nil }

// TestABrokenDeviceFails breaks one rule at a time and wants the check of that
// name to notice. In the bubble a device that hangs costs no time.
func TestABrokenDeviceFails(t *testing.T) {
	for _, c := range broken {
		t.Run(c.check+"/"+c.how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake()
				release := make(chan struct{})
				defer close(release)
				i := slices.IndexFunc(checks, func(k check) bool { return k.name == c.check })
				err := checks[i].run(t.Context(), subject{Device: c.device(f, release), level: f.level, dip: f.dip})
				if _, skipped := errors.AsType[skip](err); err == nil || skipped {
					t.Fatalf("the suite did not notice: %v", err)
				}
				t.Log(err)
			})
		})
	}
}

// TestEachRuleCanFail keeps the table of broken devices complete.
func TestEachRuleCanFail(t *testing.T) {
	for _, c := range checks {
		if !slices.ContainsFunc(broken, func(b brokenCase) bool { return b.check == c.name }) {
			t.Errorf("no broken device for %s", c.name)
		}
	}
}

// brokenCase makes a device that breaks a rule. A hanging call returns when release is closed.
type brokenCase struct {
	check, how string
	device     func(f *fake, release chan struct{}) device.Device
}

var broken = []brokenCase{
	{"describe_valid", "a bad name", described(func(d *device.Description) { d.Points[0].Name = "Warm Air" })},
	{"describe_valid", "no safe value", described(func(d *device.Description) { d.Points[4].Safe = device.Value{} })},
	{"describe_constant", "changes after Sample", func(f *fake, _ chan struct{}) device.Device { return moody{f} }},
	{"describe_verbs", "an image without a camera", func(f *fake, _ chan struct{}) device.Device { return sensorOnly{f, f} }},

	{"apply", "its steps read back", sampled(func(all []device.Reading) ([]device.Reading, error) {
		for i, r := range all {
			if r.Point == "valve" {
				all[i].Value = device.Number(math.Round(r.Value.Number()))
			}
		}
		return all, nil
	})},

	{"sample", "an error", sampled(func([]device.Reading) ([]device.Reading, error) { return nil, errors.New("dead") })},
	{"sample", "an undescribed point", reading(func(r *device.Reading) { r.Point = "ghost" })},
	{"sample", "a point twice", sampled(func(all []device.Reading) ([]device.Reading, error) { return append(all, all[0]), nil })},
	{"sample", "a point left out", sampled(func(all []device.Reading) ([]device.Reading, error) { return all[1:], nil })},
	{"sample", "an event", reading(func(r *device.Reading) { r.Point = "motion" })},
	{"sample", "the wrong type", reading(func(r *device.Reading) { r.Value = device.Bool(true) })},
	{"sample", "nothing, but good", reading(func(r *device.Reading) { r.Value = device.Value{} })},
	{"sample", "a NaN", reading(func(r *device.Reading) { r.Value = device.Number(math.NaN()) })},
	{"sample", "out of range", reading(func(r *device.Reading) { r.Value = device.Number(86) })},
	{"sample", "no time", reading(func(r *device.Reading) { r.At = time.Time{} })},
	{"sample", "the future", reading(func(r *device.Reading) { r.At = r.At.Add(time.Hour) })},
	{"sample", "bad without why", reading(func(r *device.Reading) { r.Quality = device.Bad })},
	{"sample", "an unknown quality", reading(func(r *device.Reading) { r.Quality = "fine" })},
	{"sample", "a state of no value", sampled(func(all []device.Reading) ([]device.Reading, error) {
		all[2].Value = device.Text("dusk")
		return all, nil
	})},
	{"sample_after_dip", "zero is good", func(f *fake, _ chan struct{}) device.Device {
		return samples{f, func(all []device.Reading) ([]device.Reading, error) {
			if f.dipped {
				all[0].Value = device.Number(0)
			}
			return all, nil
		}}
	}},
	{"sample_after_dip", "never well again", func(f *fake, _ chan struct{}) device.Device {
		return samples{f, func(all []device.Reading) ([]device.Reading, error) {
			if f.dipped {
				return nil, errors.New("dead")
			}
			return all, nil
		}}
	}},
	{"sample_cancelled", "deaf", func(f *fake, _ chan struct{}) device.Device { return deaf{f} }},
	{"sample_cancelled", "hangs", func(f *fake, release chan struct{}) device.Device { return hangs{f, release} }},

	{"apply", "refuses what is allowed", applied(func(f *fake, ctx context.Context, point string, v device.Value) error {
		if v != f.level(point) {
			return errors.New("stuck")
		}
		return nil
	})},
	{"apply", "does nothing", applied(func(*fake, context.Context, string, device.Value) error { return nil })},
	{"apply_unknown_point", "takes any point", applied(func(f *fake, ctx context.Context, point string, v device.Value) error {
		if _, known := f.values[point]; !known {
			return nil
		}
		return f.Apply(ctx, point, v)
	})},
	{"apply_wrong_value", "takes any type", applied(func(f *fake, ctx context.Context, point string, v device.Value) error {
		if p, _ := f.desc.Point(point); v.Type() != p.Safe.Type() {
			return nil
		}
		return f.Apply(ctx, point, v)
	})},
	{"apply_wrong_value", "clamps", applied(func(f *fake, ctx context.Context, point string, v device.Value) error {
		if v.Type() == device.TypeNumber && v.Finite() {
			v = device.Number(min(max(v.Number(), 0), 90))
		}
		return f.Apply(ctx, point, v)
	})},
	{"apply_wrong_value", "takes a NaN", applied(func(f *fake, ctx context.Context, point string, v device.Value) error {
		if math.IsNaN(v.Number()) {
			return nil
		}
		return f.Apply(ctx, point, v)
	})},
	{"apply_cancelled", "deaf", func(f *fake, _ chan struct{}) device.Device { return deaf{f} }},

	{"watch", "deaf", func(f *fake, release chan struct{}) device.Device { return hangs{f, release} }},
	{"watch", "swallows the end", watched(func(f *fake, ctx context.Context, emit func(device.Reading)) error {
		f.Watch(ctx, emit)
		return nil
	})},
	{"watch", "emits the unknown", watched(func(f *fake, ctx context.Context, emit func(device.Reading)) error {
		return f.Watch(ctx, func(r device.Reading) { r.Point = "ghost"; emit(r) })
	})},
	{"watch", "emits nothing known", watched(func(f *fake, ctx context.Context, emit func(device.Reading)) error {
		return f.Watch(ctx, func(r device.Reading) { r.Value = device.Value{}; emit(r) })
	})},

	{"show", "any point", func(f *fake, _ chan struct{}) device.Device { return deaf{f} }},
	{"show_cancelled", "deaf", func(f *fake, _ chan struct{}) device.Device { return deaf{f} }},
	{"capture", "no format", captured(func(img *device.Image) { img.MIME = "" })},
	{"capture", "no picture", captured(func(img *device.Image) { img.Data = nil })},
	{"capture", "too large", captured(func(img *device.Image) { img.Data = make([]byte, maxImage+1) })},
	{"capture", "no time", captured(func(img *device.Image) { img.At = time.Time{} })},
	{"capture", "any point", func(f *fake, _ chan struct{}) device.Device { return deaf{f} }},
	{"capture_cancelled", "deaf", func(f *fake, _ chan struct{}) device.Device { return deaf{f} }},

	{"close_twice", "the second fails", func(f *fake, _ chan struct{}) device.Device { return &closesOnce{fake: f} }},
	{"close_safe", "leaves it on", func(f *fake, _ chan struct{}) device.Device { return neverCloses{f} }},
	{"close_safe", "moves when closed", func(f *fake, _ chan struct{}) device.Device { return undead{f} }},
	{"concurrent_use", "hangs", func(f *fake, release chan struct{}) device.Device { return hangs{f, release} }},
}

// described spoils the description.
func described(spoil func(*device.Description)) func(*fake, chan struct{}) device.Device {
	return func(f *fake, _ chan struct{}) device.Device {
		spoil(&f.desc)
		return f
	}
}

// moody describes itself differently once it has been asked.
type moody struct{ *fake }

func (d moody) Sample(ctx context.Context) ([]device.Reading, error) {
	d.desc.Model = "another"
	return d.fake.Sample(ctx)
}

// sensorOnly promises more points than it has verbs for.
type sensorOnly struct {
	device.Device
	device.Sensor
}

// samples, applies, watches and captures each replace one method.
type samples struct {
	*fake
	change func([]device.Reading) ([]device.Reading, error)
}

func (d samples) Sample(ctx context.Context) ([]device.Reading, error) {
	all, _ := d.fake.Sample(ctx)
	return d.change(all)
}

func sampled(change func([]device.Reading) ([]device.Reading, error)) func(*fake, chan struct{}) device.Device {
	return func(f *fake, _ chan struct{}) device.Device { return samples{f, change} }
}

// reading spoils the first reading, a measurement.
func reading(spoil func(*device.Reading)) func(*fake, chan struct{}) device.Device {
	return sampled(func(all []device.Reading) ([]device.Reading, error) {
		spoil(&all[0])
		return all, nil
	})
}

type applies struct {
	*fake
	instead func(*fake, context.Context, string, device.Value) error
}

func (d applies) Apply(ctx context.Context, point string, v device.Value) error {
	return d.instead(d.fake, ctx, point, v)
}

func applied(instead func(*fake, context.Context, string, device.Value) error) func(*fake, chan struct{}) device.Device {
	return func(f *fake, _ chan struct{}) device.Device { return applies{f, instead} }
}

type watches struct {
	*fake
	instead func(*fake, context.Context, func(device.Reading)) error
}

func (d watches) Watch(ctx context.Context, emit func(device.Reading)) error {
	return d.instead(d.fake, ctx, emit)
}

func watched(instead func(*fake, context.Context, func(device.Reading)) error) func(*fake, chan struct{}) device.Device {
	return func(f *fake, _ chan struct{}) device.Device { return watches{f, instead} }
}

type captures struct {
	*fake
	spoil func(*device.Image)
}

func (d captures) Capture(ctx context.Context, point string) (device.Image, error) {
	img, err := d.fake.Capture(ctx, point)
	d.spoil(&img)
	return img, err
}

func captured(spoil func(*device.Image)) func(*fake, chan struct{}) device.Device {
	return func(f *fake, _ chan struct{}) device.Device { return captures{f, spoil} }
}

// deaf listens to no context and knows no point from another.
type deaf struct{ *fake }

func (d deaf) Sample(ctx context.Context) ([]device.Reading, error) {
	return d.fake.Sample(context.WithoutCancel(ctx))
}

func (d deaf) Apply(ctx context.Context, point string, v device.Value) error {
	return d.fake.Apply(context.WithoutCancel(ctx), point, v)
}

func (d deaf) Show(context.Context, string, string) error { return nil }

func (d deaf) Capture(ctx context.Context, _ string) (device.Image, error) {
	return d.fake.Capture(context.WithoutCancel(ctx), "eye")
}

// hangs comes back when it is released, and not before.
type hangs struct {
	*fake
	release chan struct{}
}

func (d hangs) Sample(context.Context) ([]device.Reading, error) {
	<-d.release
	return nil, context.Canceled
}

func (d hangs) Watch(context.Context, func(device.Reading)) error {
	<-d.release
	return context.DeadlineExceeded
}

type closesOnce struct {
	*fake
	closed bool
}

func (d *closesOnce) Close() error {
	if d.closed {
		return errors.New("closed already")
	}
	d.closed = true
	return d.fake.Close()
}

type neverCloses struct{ *fake }

func (d neverCloses) Close() error { return nil }

// undead obeys after Close.
type undead struct{ *fake }

func (d undead) Close() error {
	defer func() { d.closed = false }()
	return d.fake.Close()
}
