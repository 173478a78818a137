package things

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

type showIn struct {
	Display string `json:"display"`
	Text    string `json:"text"`
}

type shownOut struct {
	Display string `json:"display"`
	Text    string `json:"text"`
}

func (a *Agent) showText() (verb, error) {
	all := a.addresses("show_text", device.KindText)
	if len(all) == 0 {
		return verb{}, nil
	}
	return define(agents.Tool{
		Name:        "show_text",
		Description: "Show a text on a display.",
		Hints:       agents.Hints{Idempotent: true},
	}, limits{enums: map[string][]string{"display": all}},
		func(in showIn) agents.Ask { return agents.Ask{Points: named(in.Display)} }, nil,
		func(ctx context.Context, _ agents.Principal, in showIn, _ agents.Limits) (shownOut, error) {
			if err := checkText(in.Text); err != nil {
				return shownOut{}, err
			}
			p := a.byName[in.Display]
			d, ok := p.device.(device.Display)
			if !ok {
				return shownOut{}, device.Faultf(device.Internal, "%s cannot show a text after all", in.Display)
			}
			_, err := use(ctx, p, func(ctx context.Context) (struct{}, error) {
				return struct{}{}, d.Show(ctx, p.Name, in.Text)
			})
			return shownOut(in), err
		})
}

// use calls the driver of a display or a camera, which may hang: one call at a time, so
// that no more of them hang when it is called again and again.
func use[T any](ctx context.Context, p point, call func(context.Context) (T, error)) (answer T, err error) {
	ctx, cancel := context.WithTimeout(ctx, mediaTimeout)
	defer cancel()
	if err := p.turn.Take(ctx); err != nil {
		return answer, device.Faultf(device.Offline, "%s has not come back from the call before this one; look at its wiring", p.Address)
	}
	answer, _, err = device.Ask(ctx, func(ctx context.Context) (T, error) {
		defer p.turn.Give()
		return call(ctx)
	})
	return answer, err
}

func checkText(s string) error {
	if len(s) > maxShown {
		return device.Faultf(device.Invalid, "text: at most %d bytes", maxShown)
	}
	for _, r := range s {
		if unicode.IsControl(r) && r != '\n' {
			return device.Faultf(device.Invalid, "text: control characters are not shown; leave out %U", r)
		}
	}
	return nil
}

type captureIn struct {
	Camera string `json:"camera"`
}

type captureOut struct {
	Camera string `json:"camera"`
	Time   string `json:"time"`
	MIME   string `json:"mime_type"`
	Size   int    `json:"bytes"`

	image device.Image
}

func (c captureOut) contents() []agents.Content {
	return []agents.Content{{Image: &agents.Blob{MIME: c.image.MIME, Data: c.image.Data}}}
}

func (a *Agent) captureImage() (verb, error) {
	all := a.addresses("capture_image", device.KindImage)
	if len(all) == 0 {
		return verb{}, nil
	}
	return define(agents.Tool{
		Name:        "capture_image",
		Description: "Take a picture.",
		Hints:       agents.Hints{ReadOnly: true},
	}, limits{enums: map[string][]string{"camera": all}},
		func(in captureIn) agents.Ask { return about(in.Camera) }, nil,
		func(ctx context.Context, _ agents.Principal, in captureIn, _ agents.Limits) (captureOut, error) {
			p := a.byName[in.Camera]
			c, ok := p.device.(device.Camera)
			if !ok {
				return captureOut{}, device.Faultf(device.Internal, "%s cannot take a picture after all", in.Camera)
			}
			img, err := use(ctx, p, func(ctx context.Context) (device.Image, error) { return c.Capture(ctx, p.Name) })
			return captureOut{in.Camera, stamp(img.At), img.MIME, len(img.Data), img}, err
		})
}
