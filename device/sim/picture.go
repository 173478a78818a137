package sim

import (
	"bytes"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"math"
)

const pictureWidth, pictureHeight = 96, 64

// picture draws a room as a PNG. The air is as bright as the light, and the soil is darker the
// wetter it is. On the left is a thermometer from 0 to 50 °C. The lamp and the heater are drawn
// while they are on, and the open vent as a gap in the roof.
func picture(r room) ([]byte, error) {
	img := image.NewRGBA(image.Rect(0, 0, pictureWidth, pictureHeight))
	fill := func(x0, y0, x1, y1 int, c color.Color) {
		draw.Draw(img, image.Rect(x0, y0, x1, y1), image.NewUniform(c), image.Point{}, draw.Src)
	}
	air := brightness(r.light())
	fill(0, 0, pictureWidth, pictureHeight, color.RGBA{air / 2, air, air / 4 * 3, 255})
	fill(12, 0, pictureWidth, 4, color.Gray{96}) // the roof
	fill(12, 0, 12+int(r.vent*(pictureWidth-12)), 4, color.White)

	dry := uint8(160 - r.soil)
	fill(12, 52, pictureWidth, pictureHeight, color.RGBA{dry, dry / 3 * 2, dry / 3, 255})
	if r.lamp {
		fill(50, 6, 58, 14, color.RGBA{255, 240, 120, 255})
	}
	if r.heater {
		fill(76, 42, 92, 52, color.RGBA{230, 60, 20, 255})
	}

	fill(0, 0, 12, pictureHeight, color.White)
	height := int(math.Round(min(max(r.temperature/50, 0), 1) * pictureHeight))
	fill(3, pictureHeight-height, 9, pictureHeight, color.RGBA{200, 30, 30, 255})

	var out bytes.Buffer
	err := png.Encode(&out, img)
	return out.Bytes(), err
}

// brightness maps lx to a gray level on a logarithmic scale: 8 in the dark, 248 in full sun.
func brightness(lx float64) uint8 {
	return uint8(8 + 240*min(1, math.Log1p(lx)/math.Log1p(sunLight+lampLight)))
}
