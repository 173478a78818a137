// The names of points.

/** The name for people of a name for programs: soil_moisture is Soil moisture. */
export function named(of: string): string {
	const s = of.replaceAll("_", " ").trim();
	return s ? s[0]!.toUpperCase() + s.slice(1) : "–";
}

/** The name of a point without its device. */
export const short = (address: string) => address.slice(address.lastIndexOf("/") + 1);
/** The device of a point. */
export const deviceOf = (address: string) => address.slice(0, Math.max(0, address.lastIndexOf("/")));
