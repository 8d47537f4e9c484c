package problem

// nearMax is the length of the longest words that are compared, in bytes.
const nearMax = 64

// IsNear reports whether two words differ by a few letters only: an error may suggest one for the other.
func IsNear(a, b string) bool {
	return len(a) <= nearMax && len(b) <= nearMax && Distance(a, b) <= min(2, max(len(a), len(b))/4)
}

// Distance is the number of bytes to insert, delete or replace (Levenshtein).
func Distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0]++
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
