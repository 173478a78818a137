package guard

import "agentsite/device"

// interlocked returns why an output may not leave safe, given the others of its group. An
// output that is not confirmed as safe counts as away.
func (m *Machine) interlocked(now Time, o *output) error {
	if o.Interlock.Group == "" {
		return nil
	}
	short := func() string { // computed only for a refusal, so that a move allocates nothing
		return o.Output + " is interlocked with another output, which is not at safe, or not for long enough; try again later"
	}
	for i := range m.outputs {
		other := &m.outputs[i]
		wait := o.Interlock.Gap - (now - other.back)
		switch {
		case other == o || other.Interlock.Group != o.Interlock.Group:
		case other.away && other.holder != "":
			return device.Faultf(device.Unsafe,
				"%s is interlocked with %s, which %s holds for another %v; return that to safe first",
				o.Output, other.Output, other.holder, roundUp(other.until-now)).
				Naming(short(), other.Output, other.holder).In(add(other.until-now, o.Interlock.Gap))
		case other.away:
			return device.Faultf(device.Unsafe, "%s is interlocked with %s, which is not known to be safe yet; try again later", o.Output, other.Output).Naming(short(), other.Output)
		case wait > 0:
			return device.Faultf(device.Unsafe, "%s is interlocked with %s, which has not been safe for %v; try again in %v",
				o.Output, other.Output, o.Interlock.Gap, roundUp(wait)).Naming(short(), other.Output).In(wait)
		}
	}
	return nil
}

// releaseInterlocked returns the other outputs of o's group to safe.
func (m *Machine) releaseInterlocked(o *output) {
	if o.Interlock.Group == "" {
		return
	}
	for i := range m.outputs {
		if other := &m.outputs[i]; other != o && other.Interlock.Group == o.Interlock.Group {
			other.toSafe(byInterlock)
		}
	}
}
