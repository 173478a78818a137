package mqtt

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"agentsite/agents"
	"agentsite/device"
	"agentsite/device/mqtt/packet"
)

// got takes a message. It does not block.
func (b *bridge) got(ctx context.Context, m packet.Packet) {
	switch {
	case m.Topic == homeStatus || m.Topic == b.Discovery+"/status":
		switch string(m.Payload) {
		case online: // its owner may have it kept
			b.everything()
		case offline:
			b.lost()
		}
		return
	case m.Topic == b.status():
		if string(m.Payload) != online { // the will of an earlier connection, which some brokers publish late
			b.everything()
		}
		return
	case m.Topic == b.discoveryTopic():
		b.described(m.Payload)
		return
	}
	rest, ours := strings.CutPrefix(m.Topic, b.base()+"/")
	if !ours || m.Retain || m.Dup { // a kept message is no wish of now, and one that comes again was done
		b.ignore()
		return
	}
	if address, ok := strings.CutSuffix(rest, "/set"); ok {
		b.command(ctx, address, m.Payload)
	} else if address, ok := strings.CutSuffix(rest, "/capture"); ok {
		b.capture(ctx, address)
	} else if rest, ok := strings.CutPrefix(rest, "ask/"); ok {
		if address, ok := strings.CutSuffix(rest, "/press"); ok {
			b.ask(ctx, address, m.Payload)
		}
	}
}

func (b *bridge) ignore() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ignored++
}

// lost returns to safe what was moved for Home Assistant, which is gone.
func (b *bridge) lost() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, o := range b.outputs {
		o.want(device.Value{}, true)
	}
}

// command takes a command for an output or a display.
func (b *bridge) command(ctx context.Context, address string, payload []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p, o := b.points[address], b.outputs[address]
	switch {
	case p == nil || b.stopping:
		b.ignored++
	case p.Kind == device.KindText:
		if text := string(payload); len(text) <= maxText {
			b.work(address, func() error {
				return b.site.Show(ctx, b.self, agents.ShowRequest{Display: address, Text: text, Terms: terms()})
			})
		}
	case o == nil:
		b.ignored++
		if p.Kind == device.KindSwitch || p.Kind == device.KindLevel {
			b.refuse(p, fmt.Sprintf("the permission of %s (may) does not let %s be moved from the broker", KindName, address))
			p.refused = "" // told once: no later command is done, which would end it
		}
	default:
		v, ok := valueOf(p.Kind, payload)
		if !ok {
			b.ignored++
			takes := "ON or OFF"
			if p.Kind == device.KindLevel {
				takes = "a number, or OFF"
			}
			b.refuse(p, fmt.Sprintf("it takes %s, not %.40q", takes, payload))
			return
		}
		o.want(v, false)
		o.begin(ctx)
	}
}

// valueOf reads a command: ON and OFF, or a number. OFF of a level returns it to safe.
func valueOf(kind device.Kind, payload []byte) (v device.Value, ok bool) {
	text := string(payload)
	switch {
	case len(text) > maxCommand:
		return v, false
	case kind == device.KindSwitch:
		return device.Bool(text == "ON"), text == "ON" || text == "OFF"
	case text == "OFF":
		return v, true
	}
	n, err := strconv.ParseFloat(text, 64)
	v = device.Number(n)
	return v, err == nil && v.Finite() && !strings.ContainsAny(text, "xX_")
}

// refuse notes why a command was not done, and tells the point's state, which has not changed; with mu.
func (b *bridge) refuse(p *point, why string) {
	p.refused = why
	if p.known {
		b.publish(p)
	}
}

// done notes the result of a command.
func (b *bridge) done(address string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.points[address]
	switch {
	case p == nil:
	case err != nil:
		b.refuse(p, err.Error())
	case p.refused != "":
		b.refuse(p, "")
	}
}

// terms are those of a call that somebody behind the broker asks for.
func terms() agents.Terms {
	within := moveWithin.Seconds()
	return agents.Terms{Within: &within, NoApproval: true}
}

// work does what a display or a camera is asked for, one call at a time of each; with mu.
func (b *bridge) work(address string, call func() error) {
	if b.working[address] || b.stopping {
		b.ignored++
		return
	}
	b.working[address] = true
	b.moving.Go(func() {
		err := call()
		b.done(address, err)
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.working, address)
	})
}

// capture takes a picture and publishes it.
func (b *bridge) capture(ctx context.Context, address string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p := b.points[address]; p == nil || p.Kind != device.KindImage {
		b.ignored++
		return
	}
	b.work(address, func() error {
		picture, err := b.site.Capture(ctx, b.self, agents.CaptureRequest{Camera: address, Terms: terms()})
		if err != nil {
			return err
		}
		if len(picture.Data)+256 > b.link.longest {
			return device.Faultf(device.Unavailable, "the picture has %d bytes, and the broker takes %d", len(picture.Data),
				b.link.longest)
		}
		b.link.publish(message{b.topic(address) + "/image", picture.Data, false}, true)
		return nil
	})
}
