"""The words and the look of the page."""

from string import Template

from imprint.report.style import ICON, STYLE

OWN_STYLE = """
main { max-width: 1040px }
tfoot th, tfoot td { color: var(--pale); font-weight: normal; border-bottom: 0; white-space: normal }
.best small { color: var(--pale); font-weight: normal }
.chart img { display: block; width: 100%; max-width: 620px; height: auto; margin: .5rem auto 0 }
.chart img { mix-blend-mode: multiply }
.strip { display: flex; flex-wrap: wrap; gap: .75rem 1rem; margin-top: .75rem }
.strip figure { margin: 0; text-align: center }
.strip div { display: flex; gap: 2px }
.strip img { width: 38px; height: 38px; image-rendering: pixelated; border-radius: 3px }
.strip img + img { opacity: .55 }
.strip b { color: var(--ink) }
.wrong b { color: var(--bad) }
section pre { margin: .5rem 0 0 }
@media (max-width: 640px) {
  tbody th { min-width: 0; overflow-wrap: normal } tbody th small { display: none }
  th, td { padding: .4rem .15rem; font-size: .8rem } thead th, tfoot th { font-size: .7rem }
}
@media (prefers-color-scheme: dark) {
  .chart img { filter: invert(.91) hue-rotate(180deg); mix-blend-mode: lighten }
}
"""

PAGE = Template(
    """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>imprint: handwritten digits, learnt without training</title>
"""
    + ICON
    + """
<style>"""
    + STYLE
    + OWN_STYLE
    + """</style>
</head>
<body>
<main>
<h1>Handwritten digits, learnt without training</h1>
<p>TinyNet, a network that comes with imprint and was trained on photographs of quite other things, turns each of
scikit-learn's $train + $test digits into a row of numbers, its <i>embedding</i>. From the embeddings of a class a
<i>recipe</i> makes a few <i>proxies</i>, and the proxies decide what a new picture shows. Nothing is trained.</p>

<section>
<h2>What a model of all ten digits answers</h2>
<p>The first test picture of every digit with its label and probability, and beside it, faded, the training picture
nearest to the proxy that counted most.</p>
<div class="strip">$examples</div>
</section>

<section>
<h2>$count recipes on four tasks</h2>
<p>Accuracy in %, mean ± standard deviation over $seeds draws of $shots pictures of each class. Four recipes are
published; <i>kernel</i> is our own: its proxies decide together. <i>oracle</i> is a yardstick that solves for all
classes at once, and no imprinting. NC1 says how far the embeddings of a class lie from their mean (0: all at one
point): where it is large, one proxy per class is not enough.</p>
<div class="wide" tabindex="0" role="group" aria-label="Recipes"><table class="whole">
<thead><tr><th>recipe</th><th class="n">average<br>rank</th>$head</tr></thead>
<tbody>$rows</tbody>
<tfoot><tr><th>NC1 of the embeddings</th><td></td>$collapse</tr></tfoot>
</table></div>
</section>

<section class="chart">
<h2>Which differences are more than chance?</h2>
<p>$verdict</p>
<div class="on-wide">$ranks</div><div class="on-narrow">$narrow_ranks</div>
<p class="pale"><small>A bar joins recipes that cannot be told apart. The $instances instances, tasks with their draws,
share test pictures and overlap in training pictures, so these p-values are smaller than independent data would
give.</small></p>
</section>

<div class="two">
<section class="chart">
<h2>How many proxies? A budget</h2>
<p>One proxy per class is its mean. More help, and need more memory and time; with <i>kernel</i> there is nothing to
tune. Where a class has several modes, here five digits in each of two classes, one is not enough. All training
pictures are used; bands span the draws.</p>
$curve
</section>
<section class="chart">
<h2>Neural collapse says where</h2>
<p>Each point is a task of two classes with one to five digits each. The larger NC1, the more twenty proxies gain over
one: Spearman's ρ = $spearman ($p), $slope points for every tenfold NC1.</p>
$gains
</section>
</div>

<section>
<h2>It knows how good it is, says what it does not know, and forgets</h2>
<p>A model taught the digits 0 to 8 says from its training pictures alone what accuracy to expect: <b>$expected %</b>
($low to $high). On the test pictures it has <b>$came_true %</b>. Of the nines, which it has never seen, it calls
<b>$refused_unknown %</b> <i>none of these</i>; of the digits it knows, $refused_known %, where 5 % were allowed.</p>
<p>A model taught all ten digits forgets the nine in $forgetting ms. It then answers as the model that never saw one,
$exactly.</p>
</section>

<section>
<h2>Your own pictures</h2>
<p>One sub-folder per class is all it takes.</p>
<pre>imprint fit photos -o model.imprint
imprint predict model.imprint new.jpg --why
imprint evaluate model.imprint test-photos --page report.html
imprint add model.imprint more-photos
imprint serve</pre>
</section>
<footer class="pale">Made by imprint $version in $seconds s. Digits: E. Alpaydin and C. Kaynak, UCI machine learning
repository, CC BY 4.0. The page needs no network.</footer>
</main>
</body>
</html>
"""
)
