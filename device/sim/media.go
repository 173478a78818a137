package sim

import (
	"context"
	"time"
	"unicode/utf8"

	"agentsite/device"
)

// maxMessage is the length of the display in characters.
const maxMessage = 64

// Show puts a text of at most 64 characters on the display; an empty one clears it.
func (g *Greenhouse) Show(ctx context.Context, point, text string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if point != "message" {
		return device.Faultf(device.Invalid, "%q is not a display of this device", point)
	}
	if n := utf8.RuneCountInString(text); n > maxMessage {
		return device.Faultf(device.Invalid, "message shows %d characters and the text has %d: shorten it", maxMessage, n)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.message = text
	return nil
}

// Capture draws the greenhouse as it is now, a PNG of well under a kilobyte.
func (g *Greenhouse) Capture(ctx context.Context, point string) (device.Image, error) {
	if err := ctx.Err(); err != nil {
		return device.Image{}, err
	}
	if point != "camera" {
		return device.Image{}, device.Faultf(device.Invalid, "%q is not a camera of this device", point)
	}
	g.mu.Lock()
	g.catchUp()
	room, now := g.room, time.Now()
	g.mu.Unlock()
	data, err := picture(room)
	if err != nil {
		return device.Image{}, err
	}
	return device.Image{MIME: "image/png", Data: data, At: now}, nil
}
