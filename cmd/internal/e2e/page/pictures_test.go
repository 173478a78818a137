//go:build e2e

package page

import (
	"bytes"
	"flag"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
)

var pictures = flag.String("pictures", "", "a folder where TestPictures writes the pictures of the documentation, such as docs")

// TestPictures makes the pictures of the documentation, where that is asked for.
func TestPictures(t *testing.T) {
	if *pictures == "" {
		t.Skip("SKIPPED: -pictures names no folder")
	}
	b, _ := openHouse(t)
	for _, p := range []struct {
		name, view, scheme string
		size               [2]int64
	}{
		{"page.png", "house", "light", [2]int64{920, 620}},
		{"page-dark.png", "site?s=demo", "dark", [2]int64{920, 620}},
		{"page-phone.png", "house", "light", phone},
	} {
		b.look(p.size, p.scheme)
		b.show(p.view)
		picture, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
		var small bytes.Buffer // Chromium's takes half as much again
		if err == nil {
			err = shrink(&small, picture)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(*pictures, p.name), small.Bytes(), 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
		if small.Len() > 60_000 {
			t.Errorf("%s has %d bytes", p.name, small.Len())
		}
	}
}

// shrink writes a PNG again, as small as it gets.
func shrink(to io.Writer, picture []byte) error {
	i, err := png.Decode(bytes.NewReader(picture))
	if err != nil {
		return err
	}
	return (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(to, i)
}
