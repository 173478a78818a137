package main

// difference returns the lines that only one of two texts has, with - or + before them, in order.
func difference(before, after []string) (lines []string) {
	const most = 1000 // lines that are compared; a longer text is shown whole
	if len(before) > most || len(after) > most {
		for _, l := range after {
			lines = append(lines, "+ "+l)
		}
		return lines
	}
	common := make([][]int16, len(before)+1) // of the texts from i and from j on
	for i := range common {
		common[i] = make([]int16, len(after)+1)
	}
	for i := len(before) - 1; i >= 0; i-- {
		for j := len(after) - 1; j >= 0; j-- {
			if common[i][j] = max(common[i+1][j], common[i][j+1]); before[i] == after[j] {
				common[i][j] = common[i+1][j+1] + 1
			}
		}
	}
	i, j := 0, 0
	for i < len(before) || j < len(after) {
		switch {
		case i < len(before) && j < len(after) && before[i] == after[j]:
			i, j = i+1, j+1
		case j == len(after) || i < len(before) && common[i+1][j] >= common[i][j+1]:
			lines, i = append(lines, "- "+before[i]), i+1
		default:
			lines, j = append(lines, "+ "+after[j]), j+1
		}
	}
	return lines
}
