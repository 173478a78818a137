package devicetest

import (
	"context"
	"fmt"
	"time"

	"agentsite/device"
)

// maxImage is the limit for "a few hundred kilobytes".
const maxImage = 512 << 10

func show(ctx context.Context, s subject) error {
	display, ok := s.Device.(device.Display)
	if !ok {
		return skip("not a Display")
	}
	for _, p := range s.points(is(device.KindText)) {
		for _, text := range []string{"hello", "24 °C", ""} {
			if err := display.Show(ctx, p.Name, text); err != nil {
				return fmt.Errorf("Show(%s, %q): %w", p.Name, text, err)
			}
		}
	}
	if display.Show(ctx, nowhere, "hello") == nil {
		return fmt.Errorf("Show(%q) was accepted, but there is no such point", nowhere)
	}
	return nil
}

func showCancelled(_ context.Context, s subject) error {
	display, ok := s.Device.(device.Display)
	texts := s.points(is(device.KindText))
	if !ok || len(texts) == 0 {
		return skip("no display")
	}
	return cancelled(func(ctx context.Context) error {
		return display.Show(ctx, texts[0].Name, "hello")
	})
}

func capture(ctx context.Context, s subject) error {
	camera, ok := s.Device.(device.Camera)
	if !ok {
		return skip("not a Camera")
	}
	for _, p := range s.points(is(device.KindImage)) {
		img, err := camera.Capture(ctx, p.Name)
		switch {
		case err != nil:
			return fmt.Errorf("Capture(%s): %w", p.Name, err)
		case img.MIME != "image/jpeg" && img.MIME != "image/png":
			return fmt.Errorf("Capture(%s) is %q, want image/jpeg or image/png", p.Name, img.MIME)
		case len(img.Data) == 0 || len(img.Data) > maxImage:
			return fmt.Errorf("Capture(%s) has %d bytes, want 1 to %d", p.Name, len(img.Data), maxImage)
		case img.At.IsZero() || img.At.After(time.Now()):
			return fmt.Errorf("Capture(%s) is from %v, want a time that has been", p.Name, img.At)
		}
	}
	if _, err := camera.Capture(ctx, nowhere); err == nil {
		return fmt.Errorf("Capture(%q) was accepted, but there is no such point", nowhere)
	}
	return nil
}

func captureCancelled(_ context.Context, s subject) error {
	camera, ok := s.Device.(device.Camera)
	images := s.points(is(device.KindImage))
	if !ok || len(images) == 0 {
		return skip("no camera")
	}
	return cancelled(func(ctx context.Context) error {
		_, err := camera.Capture(ctx, images[0].Name)
		return err
	})
}
