package calendar

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Place holds the latitude and the longitude of a site in degrees, north and east positive.
type Place struct{ Lat, Lon float64 }

// ParsePlace reads a latitude and a longitude in decimal degrees: "52.52, 13.40".
func ParsePlace(text string) (Place, error) {
	const write = `write latitude and longitude in decimal degrees, such as "52.52, 13.40"; south and west are negative`
	if len(text) > 64 {
		return Place{}, errors.New("the place is longer than 64 bytes; " + write)
	}
	lat, lon, _ := strings.Cut(text, ",")
	var p Place
	for _, part := range []struct {
		text string
		to   *float64
	}{{lat, &p.Lat}, {lon, &p.Lon}} {
		digits := strings.TrimSpace(part.text)
		n, err := strconv.ParseFloat(digits, 64)
		if err != nil || strings.Trim(digits, "+-.0123456789") != "" {
			return Place{}, fmt.Errorf("the place %q is not understood; %s", text, write)
		}
		*part.to = n
	}
	if !p.valid() {
		return Place{}, fmt.Errorf("the place %q is out of range; write the latitude first, from -90 to 90, then the longitude, from -180 to 180", text)
	}
	return p, nil
}

func (p Place) valid() bool { return math.Abs(p.Lat) <= 90 && math.Abs(p.Lon) <= 180 }

// Sun returns sunrise and sunset of the day of t in t's location: the rise before and the set
// after the solar noon that belongs to the local date. Near the polar circles they can be on the
// dates beside it. ok is false on a day on which the sun does not rise or set, and at a place
// that is out of range.
//
// It computes with the solar equations of NOAA's Global Monitoring Laboratory (after Meeus,
// Astronomical Algorithms), for a horizon at sea level and the usual refraction. Against an
// ephemeris it is exact to a few seconds up to 60° of latitude, and to a minute or two at 70°,
// where the sun moves along the horizon. Weather changes refraction by more than that.
func (p Place) Sun(t time.Time) (rise, set time.Time, ok bool) {
	return p.sunAround(firstInstant(midnight(wallClock(t)).Add(12*time.Hour), t.Location()))
}

// never is further from any day than an offset reaches.
const never = 1000 * 24 * time.Hour

// Day is Sun with a rise and a set on each day: where the sun does not cross the horizon, it has set
// long ago and will rise in a long time, or it rose long ago and will set in a long time.
func (p Place) Day(t time.Time) (rise, set time.Time) {
	rise, set, ok := p.Sun(t)
	switch noon := firstInstant(midnight(wallClock(t)).Add(12*time.Hour), t.Location()); {
	case ok:
		return rise, set
	case p.isUp(noon):
		return t.Add(-never), t.Add(never)
	default:
		return t.Add(never), t.Add(-never)
	}
}

// isUp reports whether the sun is nearer to being always up than always down on the day of t.
func (p Place) isUp(t time.Time) bool {
	declination, _ := sunPosition(t)
	return p.Lat*declination > 0
}

// sunAround is Sun for the solar noon that is nearest to noon, an instant, by the mean sun.
func (p Place) sunAround(noon time.Time) (rise, set time.Time, ok bool) {
	if !p.valid() {
		return time.Time{}, time.Time{}, false
	}
	const day = 24 * time.Hour
	mean := midnight(noon.UTC()).Add(-day/2 - minutes(4*p.Lon)) // up to two days early
	mean = mean.Add((noon.Sub(mean) + day/2).Truncate(day))
	rise, riseOK := p.crossing(mean, -1)
	set, setOK := p.crossing(mean, +1)
	return rise.In(noon.Location()), set.In(noon.Location()), riseOK && setOK
}

// crossing returns when the sun's upper edge is on the horizon, on one side of the solar noon
// whose mean time is given: -1 is before, +1 is after.
func (p Place) crossing(mean time.Time, side float64) (time.Time, bool) {
	const zenith = 90.833 // degrees: with refraction and half of the sun's width
	lat := radians(p.Lat)
	at := mean
	for range 5 { // the sun moves meanwhile; two rounds suffice except near polar days
		declination, equation := sunPosition(at)
		cosHour := math.Cos(radians(zenith))/(math.Cos(lat)*math.Cos(declination)) - math.Tan(lat)*math.Tan(declination)
		if !(math.Abs(cosHour) <= 1) {
			return time.Time{}, false
		}
		hourAngle := math.Acos(cosHour) * 180 / math.Pi
		at = mean.Add(minutes(side*4*hourAngle - equation))
	}
	return at, true
}

// sunPosition returns the sun's declination in radians and the equation of time in minutes.
func sunPosition(t time.Time) (declination, equation float64) {
	c := (float64(t.Unix())/86400 + 2440587.5 - 2451545) / 36525 // Julian centuries since J2000.0
	longitude := radians(280.46646 + c*(36000.76983+c*0.0003032))
	anomaly := radians(357.52911 + c*(35999.05029-c*0.0001537))
	eccentricity := 0.016708634 - c*(0.000042037+c*0.0000001267)
	center := math.Sin(anomaly)*(1.914602-c*(0.004817+c*0.000014)) +
		math.Sin(2*anomaly)*(0.019993-c*0.000101) + math.Sin(3*anomaly)*0.000289
	node := radians(125.04 - 1934.136*c)
	apparent := longitude + radians(center-0.00569-0.00478*math.Sin(node))
	obliquity := radians(23 + (26+(21.448-c*(46.815+c*(0.00059-c*0.001813)))/60)/60 + 0.00256*math.Cos(node))
	declination = math.Asin(math.Sin(obliquity) * math.Sin(apparent))

	y := math.Pow(math.Tan(obliquity/2), 2)
	equation = y*math.Sin(2*longitude) - 2*eccentricity*math.Sin(anomaly) +
		4*eccentricity*y*math.Sin(anomaly)*math.Cos(2*longitude) -
		y*y/2*math.Sin(4*longitude) - 5*eccentricity*eccentricity/4*math.Sin(2*anomaly)
	return declination, 4 * equation * 180 / math.Pi
}

func radians(degrees float64) float64 { return degrees * math.Pi / 180 }

func minutes(n float64) time.Duration { return time.Duration(n * float64(time.Minute)) }
