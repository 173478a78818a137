package node

import (
	"context"
	"time"
	"unicode"

	"agentsite/agents"
	"agentsite/device"
)

const (
	// maxShown bounds a text for a display.
	maxShown = 500
	// mediaTimeout bounds a display and a camera, which are the slowest.
	mediaTimeout = 20 * time.Second
)

// Show shows a text on a display.
func (n *Node) Show(ctx context.Context, p agents.Principal, r agents.ShowRequest) error {
	c := Call{who: p, Ask: agents.Ask{Op: agents.OpShow, Points: named(r.Display)}, Terms: r.Terms, Args: r}
	v := n.enter(&c)
	wrong := v.offer().CheckPoint(agents.OpShow, "display", r.Display, device.Value{}, v.offer().Show)
	if wrong == nil {
		wrong = checkText(r.Text)
	}
	if err := n.begin(&c, wrong); err != nil {
		return err
	}
	defer c.End()
	of := v.point(r.Display)
	d, ok := of.device.(device.Display)
	if !ok {
		return v.redact(p, device.Faultf(device.Internal, "%s cannot show a text after all", r.Display))
	}
	_, err := useDriver(ctx, of, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, d.Show(ctx, of.Name, r.Text)
	})
	return v.redact(p, err)
}

// Capture takes a picture.
func (n *Node) Capture(
	ctx context.Context, p agents.Principal, r agents.CaptureRequest,
) (out agents.Picture, err error) {
	ask := agents.Ask{Op: agents.OpCapture, Points: named(r.Camera), Effect: agents.Reads}
	c := Call{who: p, Ask: ask, Terms: r.Terms, Args: r}
	v := n.enter(&c)
	wrong := v.offer().CheckPoint(agents.OpCapture, "camera", r.Camera, device.Value{}, v.offer().Capture)
	if err := n.begin(&c, wrong); err != nil {
		return out, err
	}
	defer c.End()
	of := v.point(r.Camera)
	d, ok := of.device.(device.Camera)
	if !ok {
		return out, v.redact(p, device.Faultf(device.Internal, "%s cannot take a picture after all", r.Camera))
	}
	img, err := useDriver(ctx, of, func(ctx context.Context) (device.Image, error) { return d.Capture(ctx, of.Name) })
	return agents.Picture{
		Camera: r.Camera, Time: stamp(v.timeOf(img.At)), MIME: img.MIME, Size: len(img.Data), Data: img.Data,
	}, v.redact(p, err)
}

// useDriver calls the driver of a display or a camera, which may hang. It makes one call at a
// time, so that repeated requests do not add hanging calls.
func useDriver[T any](ctx context.Context, p *point, use func(context.Context) (T, error)) (answer T, err error) {
	ctx, cancel := context.WithTimeout(ctx, mediaTimeout)
	defer cancel()
	if err := p.busy.LockContext(ctx); err != nil {
		return answer, device.Faultf(device.Offline, "%s hangs in an earlier call; check its wiring", p.Address)
	}
	answer, _, err = device.Call(ctx, func(ctx context.Context) (T, error) {
		defer p.busy.Unlock()
		return use(ctx)
	})
	return answer, err
}

func checkText(s string) error {
	switch {
	case s == "":
		return device.Faultf(device.Invalid, "text is missing")
	case len(s) > maxShown:
		return device.Faultf(device.Invalid, "text: at most %d bytes", maxShown)
	}
	for _, r := range s {
		if unicode.IsControl(r) && r != '\n' {
			return device.Faultf(device.Invalid, "text: control characters are not shown; leave out %U", r)
		}
	}
	return nil
}
