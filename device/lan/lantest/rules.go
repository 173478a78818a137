package lantest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"agentsite/device"

	"go.uber.org/goleak"
)

// lost: a cut link is noticed, every point says so, and the device works again by itself.
func lost(r *rig) error {
	if err := r.works(); err != nil {
		return err
	}
	r.proxy.Cut()
	if err := r.notices(); err != nil {
		return err
	}
	r.proxy.Mend()
	return r.recovers()
}

// silent: so is a link that carries nothing more.
func silent(r *rig) error {
	if err := r.works(); err != nil {
		return err
	}
	r.proxy.Freeze()
	if err := r.notices(); err != nil {
		return err
	}
	r.proxy.Mend()
	return r.recovers()
}

// confirmed: Apply succeeds only once the peer has the value.
func confirmed(r *rig) error {
	if err := r.outputs(); err != nil {
		return err
	}
	if failed, broken := r.apply(r.away(), callTime); failed != nil || broken != nil {
		return errors.Join(broken, failed)
	}
	if !r.at(r.away()) {
		return fmt.Errorf("after a successful Apply of %v, %s is %v", r.away(), r.out.Name, r.peer.Level(r.out.Name))
	}
	if r.peer.Ignore == nil {
		return skip("no Ignore")
	}
	r.peer.Ignore(true)
	failed, broken := r.apply(r.out.Safe, callTime)
	if failed == nil && broken == nil {
		return errors.New("Apply succeeded, and the peer has ignored it")
	}
	r.peer.Ignore(false)
	return errors.Join(broken, r.recovers())
}

// notLater: what was not confirmed when the context of its Apply ended does not happen later. A driver ends the
// connection on which it waited in vain.
func notLater(r *rig) error {
	if err := r.outputs(); err != nil {
		return err
	}
	for what, lose := range map[string]func(){"cut": r.proxy.Cut, "frozen": r.proxy.Freeze} {
		lose()
		failed, broken := r.apply(r.away(), 500*time.Millisecond)
		if failed == nil && broken == nil {
			return fmt.Errorf("Apply succeeded over a link that is %s", what)
		}
		if broken != nil {
			return broken
		}
		for end := time.Now().Add(slack); !r.proxy.Left() && time.Now().Before(end); time.Sleep(time.Millisecond) {
		}
		r.proxy.Mend()
		// Only what the driver sends by itself can move the output now.
		err := until(r.Recover, func() error {
			if !r.at(r.out.Safe) {
				return nil
			}
			return r.good()
		})
		if err != nil {
			return err
		}
		for end := time.Now().Add(2 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
			if !r.at(r.out.Safe) {
				return fmt.Errorf("the link was %s: the value of an Apply that failed arrived after it", what)
			}
		}
		if err := r.recovers(); err != nil {
			return err
		}
	}
	return nil
}

// lateAnswer: an answer that comes after its call has ended confirms no other call.
func lateAnswer(r *rig) error {
	if err := r.outputs(); err != nil {
		return err
	}
	r.proxy.Delay(400 * time.Millisecond)
	for range 8 {
		for _, v := range []device.Value{r.away(), r.out.Safe} {
			failed, broken := r.apply(v, 600*time.Millisecond)
			if broken != nil {
				return broken
			}
			if failed == nil && !r.at(v) {
				return fmt.Errorf("Apply of %v was confirmed by an earlier answer: %s is %v", v, r.out.Name,
					r.peer.Level(r.out.Name))
			}
		}
	}
	r.proxy.Mend()
	return r.recovers()
}

// secondWriter: a value that somebody else has set is read back.
func secondWriter(r *rig) error {
	if err := r.outputs(); err != nil {
		return err
	}
	if r.peer.Set == nil {
		return skip("no Set")
	}
	if _, ok := r.dev.(device.Sensor); !ok {
		return skip("nothing is read back")
	}
	r.peer.Set(r.out.Name, r.away())
	return until(r.Notice, func() error {
		seen := false
		err := r.sample(func(p device.Reading) error {
			seen = seen || p.Point == r.out.Name && p.Quality == device.Good && p.Value == r.away()
			return nil
		})
		if err == nil && !seen {
			err = fmt.Errorf("somebody has set %s to %v, and it is not read", r.out.Name, r.away())
		}
		return err
	})
}

// backoff: a driver asks for a peer that is away at most about once a second, whoever waits for it, and finds it
// when it is back.
func backoff(r *rig) error {
	if err := r.works(); err != nil {
		return err
	}
	r.proxy.Cut()
	before, begun := r.proxy.Attempts(), time.Now()
	for pause := 100 * time.Millisecond; time.Since(begun) < 8*time.Second; pause = min(2*pause, 5*time.Second) {
		if r.out.Name != "" {
			if _, broken := r.apply(r.out.Safe, callTime); broken != nil {
				return broken
			}
		}
		_ = r.bad()
		time.Sleep(pause)
	}
	if n := r.proxy.Attempts() - before; n > 14 {
		return fmt.Errorf("%d attempts to connect in 8 s", n)
	}
	r.proxy.Mend()
	return r.recovers()
}

// maxFlood is the most that a driver may take of a flood, with the kernel's buffers.
const maxFlood = 6 << 20

// flood: a peer that floods is read no more, and calls return in time.
func flood(r *rig) error {
	if err := r.works(); err != nil {
		return err
	}
	if r.peer.Flood == nil {
		return skip("no Flood")
	}
	before, attempts := r.proxy.Carried(), r.proxy.Attempts()
	r.peer.Flood()
	for end := time.Now().Add(6 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if err := r.bad(); err != nil {
			if _, ok := errors.AsType[believed](err); !ok { // good values may still come in time
				return err
			}
		}
	}
	if n := r.proxy.Carried() - before; n > maxFlood {
		return fmt.Errorf("the driver has read %d kB of a flood in 6 s", n>>10)
	}
	if n := r.proxy.Attempts() - attempts; n > 12 {
		return fmt.Errorf("%d attempts to connect to a peer that floods, in 6 s", n)
	}
	return nil
}

// absent: the open of a device that is not there ends in time, with an Offline fault or a device that says so.
func absent(r *rig) error {
	r.start()
	r.proxy.Cut()
	begun := time.Now()
	dev, err := r.Open(r.t, r.proxy.Address)
	if took := time.Since(begun); took > openMax {
		return fmt.Errorf("it took %v to open a device that is not there", took)
	}
	if err != nil {
		if kind := device.AsFault(err).Kind; kind != device.Offline {
			return fmt.Errorf("the open of a device that is not there is %s, want offline: %w", kind, err)
		}
		return nil
	}
	if _, broken := closed(dev); broken != nil {
		return broken
	}
	if err := r.open(); err != nil {
		return err
	}
	if err := r.notices(); err != nil {
		return err
	}
	r.proxy.Mend()
	return r.recovers()
}

// closing: Close ends in time whatever the link does, leaves the outputs safe where it can, and leaves nothing behind.
func closing(r *rig) error {
	for _, what := range []string{"works", "cut", "frozen"} {
		r.out = device.Point{}
		r.start()
		before := goleak.IgnoreCurrent()
		if err := r.open(); err != nil {
			return err
		}
		if err := r.recovers(); err != nil {
			return err
		}
		if r.out.Name != "" {
			if failed, broken := r.apply(r.away(), callTime); failed != nil || broken != nil {
				return errors.Join(broken, failed)
			}
		}
		switch what {
		case "cut":
			r.proxy.Cut()
		case "frozen":
			r.proxy.Freeze()
		}
		err, broken := closed(r.dev)
		switch {
		case broken != nil:
			return fmt.Errorf("over a link that is %s: %w", what, broken)
		case what != "works" || r.out.Name == "":
		case err != nil:
			return fmt.Errorf("Close: %w", err)
		case !r.at(r.out.Safe):
			return fmt.Errorf("after Close, %s is %v", r.out.Name, r.peer.Level(r.out.Name))
		}
		attempts := r.proxy.Attempts()
		if r.out.Name != "" {
			ctx, cancel := context.WithTimeout(r.t.Context(), callTime)
			if r.dev.(device.Actuator).Apply(ctx, r.out.Name, r.away()) == nil {
				cancel()
				return errors.New("a closed device accepts an Apply")
			}
			cancel()
		}
		r.proxy.Close()
		if n := r.proxy.Attempts() - attempts; n > 1 { // one can have been on its way
			return fmt.Errorf("a closed device has connected %d times", n)
		}
		if err := goleak.Find(before); err != nil {
			return fmt.Errorf("after Close over a link that is %s: %w", what, err)
		}
	}
	return nil
}
