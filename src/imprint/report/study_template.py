"""The words of the page of a study."""

from string import Template

PAGE = Template("""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>$title</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>$style</style></head><body><main>
<h1>$title</h1>
$scope
<ul class="facts">$facts</ul>
$failures
<section>
<h2>Methods</h2>
<p>$explained</p>
<div class="wide"><table class="whole"><thead><tr>$head</tr></thead><tbody>
$rows
</tbody></table></div>
</section>
$diagram
$breakdowns
<footer class="pale">$versions The page needs no network.</footer>
</main></body></html>
""")

DIAGRAM = Template("""<section>
<h2>Which differences are more than chance?</h2>
<p>$note</p>
<figure class="ranks"><div class="on-wide">$wide</div><div class="on-narrow">$narrow</div></figure>
</section>
<section>
<h2>Every pair</h2>
<p>p-values of Wilcoxon's signed-rank test, adjusted by Holm for $count. Where two methods differ significantly, the
value is bold.</p>
<div class="wide"><table><thead><tr><th></th>$head</tr></thead><tbody>
$rows
</tbody></table></div>
</section>""")
