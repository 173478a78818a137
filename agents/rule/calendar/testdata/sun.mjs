// Prints sunrise and sunset of each day of 2026, or with the argument 10 what sun.txt has.
// npm install astronomy-engine && node sun.mjs >year.txt && SUN_TABLE=$PWD/year.txt go test -run '^TestSun$' ..
import { Body, Observer, SearchHourAngle, SearchRiseSet } from 'astronomy-engine'

const places = [
  ['Europe/Berlin', 52.52, 13.4], ['America/New_York', 40.71, -74.01], ['America/Guayaquil', -0.18, -78.47],
  ['Australia/Sydney', -33.87, 151.21], ['Australia/Lord_Howe', -31.55, 159.08], ['Atlantic/Reykjavik', 64.15, -21.94],
  ['Europe/Oslo', 69.65, 18.96],
]
const hour = 3600e3
const text = (event) => event ? new Date(Math.round(event.date / 1000) * 1000).toISOString().replace('.000', '') : '-'

for (const [zone, lat, lon] of places) {
  const observer = new Observer(lat, lon, 0)
  for (let day = 0; day < 365; day += Number(process.argv[2] ?? 1)) {
    const date = Date.UTC(2026, 0, 1) + day * 24 * hour
    const midnight = new Date(date - lon / 15 * hour) // of the place, about
    const noon = SearchHourAngle(Body.Sun, observer, 0, midnight).time
    const lower = SearchHourAngle(Body.Sun, observer, 12, new Date(noon.date - 13 * hour)).time
    const half = noon.ut - lower.ut
    console.log(zone, lat, lon, new Date(date).toISOString().slice(0, 10),
      text(SearchRiseSet(Body.Sun, observer, 1, lower, half)), text(SearchRiseSet(Body.Sun, observer, -1, noon, half)))
  }
}
