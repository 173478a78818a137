package history

import (
	"log/slog"
	"os"
	"strconv"
	"strings"
)

// loaded is the state that Open reads from the disk.
type loaded struct {
	disk   disk
	tiers  [tiers]tier
	epochs map[uint32]*epoch
	end    head // the sequence, epoch and time that were reached
}

// load reads the files, and completes the coarser tiers if a crash has left them behind.
func (l *loaded) load(names []string) {
	var r report
	for i := range l.tiers {
		l.tiers[i].load(l.disk, names, &r)
		for _, s := range l.tiers[i].segments {
			// A file that cannot be read keeps its name.
			if _, number, ok := strings.Cut(s.name, "-"); ok {
				seq, _ := strconv.ParseUint(strings.TrimRight(number, another), 16, 64)
				l.end.seq = max(l.end.seq, seq)
			}
			for _, k := range s.refs {
				if i != imported {
					l.state(k.head)
				}
			}
		}
	}
	if r.damaged > 0 {
		slog.Warn("parts of the history are damaged and left out", "places", r.damaged)
	}
	for _, name := range r.newer {
		slog.Warn("a file of the history has blocks of a newer version, which are left out: update this program to see them", "file", name, "version", version)
	}
	if r.failed != nil {
		slog.Error("a part of the history cannot be read", "err", r.failed)
	}
	if r.failed != nil || r.newer != nil { // what is not read now may have used the next ones
		l.end.epoch += 1 << 10
	}
	l.complete(minutes)
	l.complete(hours)
	for i := range l.tiers {
		l.tiers[i].room = maxUnwritten + l.tiers[i].waiting // what was completed stays until it is written
	}
}

// state takes what a block says of its epoch.
func (l *loaded) state(h head) {
	e := l.epochs[h.epoch]
	if e == nil {
		e = &epoch{id: h.epoch, first: h.first, last: h.last}
		l.epochs[h.epoch] = e
	}
	e.state(h)
	l.end.seq, l.end.epoch, l.end.last = max(l.end.seq, h.seq), max(l.end.epoch, h.epoch), max(l.end.last, h.last)
}

// complete makes the blocks of a tier that a crash has left unwritten, from the finer tier.
func (l *loaded) complete(coarse int) {
	to, from := &l.tiers[coarse], &l.tiers[coarse-1]
	end, _ := to.end()
	var c *collector
	blocks, seq := 0, uint64(0)
	finish := func() {
		if blocks == 0 {
			return
		}
		take := c.takeMinutes
		if coarse == hours {
			take = c.takeHours
		}
		before, _ := to.end()
		h, all := take()
		h.seq, h.from = seq, before.seq
		to.add(h, all)
		blocks = 0
	}
	each(l.disk, from.view(), end.seq, func(h head, payload []byte) {
		if c != nil && c.epoch != h.epoch || blocks >= rawPerMinutes {
			finish()
		}
		if c == nil || c.epoch != h.epoch {
			c = &collector{series: make(map[string]*series), epoch: h.epoch, wall: l.epochs[h.epoch].newest().offset}
			if coarse == minutes && end.epoch == h.epoch {
				l.carry(c, end.seq)
			}
		}
		parsePayload(payload, "", func(e entry) bool { c.addEntry(e, h.first, coarse); return true })
		c.now, seq = h.last, h.seq
		blocks++
	})
	finish()
}

// carry gives a collector the values that states and outputs had at the end of a block of
// minutes.
func (l *loaded) carry(c *collector, seq uint64) {
	each(l.disk, l.tiers[minutes].view(), seq-1, func(h head, payload []byte) {
		if h.seq != seq {
			return
		}
		parsePayload(payload, "", func(e entry) bool {
			if e.form == formChanges {
				decodeChanges(e.data, h.first, func(x change) bool { c.of(e.key).carried = &x; return true })
			}
			return true
		})
	})
	for _, s := range c.series {
		s.held = s.carried
	}
}

// of returns the series with a key, which it makes where it is missing.
func (c *collector) of(key string) *series {
	s := c.series[key]
	if s == nil {
		s = &series{key: key, listed: true}
		c.series[key] = s
	}
	return s
}

// addEntry adds a series of a block to the collected records of a coarser tier.
func (c *collector) addEntry(e entry, base int64, coarse int) {
	s := c.of(e.key)
	switch {
	case e.form == formSamples:
		decodeSamples(e.data, base, func(x sample) bool { c.addSample(s, x); return true })
	case e.form == formBuckets:
		decodeBuckets(e.data, base, func(b bucket) bool { s.hours = c.addTo(s.hours, b, msHour); return true })
	case e.form == formChanges && coarse == minutes:
		decodeChanges(e.data, base, func(x change) bool { c.change(s, x); return true })
	}
}

// tierView is a tier's blocks at one moment.
type tierView struct {
	segments  []segment
	unwritten []block
}

func (t *tier) view() (v tierView) {
	for _, s := range t.segments {
		v.segments = append(v.segments, segment{name: s.name, refs: s.refs, told: s.told})
	}
	v.unwritten = t.unwritten
	return v
}

// each calls yield for the blocks of a tier after a sequence, oldest first. A damaged one is
// left out. The payload is valid during the call.
func each(d disk, v tierView, after uint64, yield func(head, []byte)) {
	v.each(d, func(h head) bool { return h.seq > after }, yield)
}

func (v tierView) each(d disk, want func(head) bool, yield func(head, []byte)) {
	for _, s := range v.segments {
		var r segmentReader
		for _, k := range s.refs {
			if !want(k.head) {
				continue
			}
			if r.f == nil {
				f, err := d.Open(s.name, os.O_RDONLY)
				if err != nil {
					break // it was removed meanwhile
				}
				r.f = f
				r.size, _ = f.Size()
			}
			if b := r.block(k); b != nil {
				yield(k.head, b[headSize:])
			} else if !s.told.Swap(true) {
				slog.Warn("a block of the history is damaged and left out, and others of its file may be", "file", s.name, "offset", k.at)
			}
		}
		if r.f != nil {
			r.f.Close()
		}
	}
	for _, k := range v.unwritten {
		if want(k.head) {
			yield(k.head, k.b[headSize:])
		}
	}
}
