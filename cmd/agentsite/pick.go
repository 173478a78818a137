package main

import (
	"context"
	"slices"
	"strings"

	"agentsite/agents"
	"agentsite/device"
)

// listPoints asks for the points that the caller may see.
func (s *session) listPoints(ctx context.Context) ([]point, error) {
	list, err := askSite(ctx, s, agents.Site.Points, agents.SiteRequest{})
	all := make([]point, 0, len(list.Points)) // [] with --json
	for _, p := range list.Points {
		all = append(all, point(p))
	}
	return all, err
}

// pick expands words to the names of points: * to those that fit, DEVICE or DEVICE/* to those of a
// device, and DEVICE/POINT to itself. It refuses a known point that does not fit. It keeps unknown
// points, for which the site returns the error.
func pick(points []point, words []string, fit func(point) bool) ([]string, error) {
	var picked, names []string
	for _, p := range points {
		names = append(names, p.Point)
	}
	for _, word := range words {
		if word == "*" {
			for _, p := range points {
				if fit(p) && !slices.Contains(picked, p.Point) {
					picked = append(picked, p.Point)
				}
			}
			continue
		}
		dev, all := strings.CutSuffix(word, "/*")
		if strings.Contains(dev, "/") {
			if i := slices.Index(names, word); i >= 0 && !fit(points[i]) {
				return nil, usagef("%s", points[i].explainUnfit())
			}
			picked = append(picked, word)
			continue
		}
		before := len(picked)
		for _, p := range points {
			if strings.HasPrefix(p.Point, dev+"/") && fit(p) && !slices.Contains(picked, p.Point) {
				picked = append(picked, p.Point)
			}
		}
		switch {
		case len(picked) > before:
		case slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, dev+"/") }):
			return nil, usagef("%s has no points for this command, or they are named twice; agentsite points lists its points", dev)
		case all:
			return nil, usagef("there is no device %q here; agentsite points lists all points", dev)
		default:
			return nil, usagef("there is no device or point %q here%s; agentsite doctor names devices that are missing", dev,
				device.Suggest(dev, names, "point"))
		}
	}
	return picked, nil
}

// explainUnfit explains why a point has no readings or no history.
func (p point) explainUnfit() string {
	switch p.Kind {
	case "text":
		return p.Point + " is a display and has no readings: write to it with agentsite call show_text"
	case "image":
		return p.Point + " is a camera and has no readings: take a picture with agentsite call capture_image"
	}
	article := " is a "
	if p.Kind == "event" {
		article = " is an "
	}
	return p.Point + article + string(p.Kind) + ", not a measurement: a site keeps the history of measurements only; agentsite read shows the latest reading"
}
