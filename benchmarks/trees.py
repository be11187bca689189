"""Accuracy of the deepest likely node for rejected inputs, for inputs of known and of unknown classes.

    python benchmarks/trees.py images shared/embeddings/subset/deit_tiny-cifar10.npz
    python benchmarks/trees.py texts clinc.npz

`images`: CIFAR-10 below `animal` and `vehicle`, without two animals and one vehicle; digits of the MNIST pack in the
same folder belong to no node. `texts`: CLINC150 below its ten domains, without three intents of each; its out-of-scope
queries belong to no node. `clinc.npz` holds `train`, `train_y`, `test`, `test_y` and `oos_test`, embedded by minilm.
Prints, for inputs rejected by p-values below 0.05, by minimum node probability and minimum p-value: the share of inputs
rejected, the share of these with a node, and the share of these nodes that is right. Three draws of the classes.
"""

import sys
from pathlib import Path

import numpy as np

from imprint import recipe
from imprint.core.tree import LabelTree

UNKNOWN, DRAWS = 0.05, 3
RULES = ((0.9, 0.0), (0.8, 0.0), (0.8, 0.01), (0.8, 0.02))
"""The least probability of a node, and the least p-value; the third is the rule of `imprint.core.tree`."""
IMAGES = [
    "airplane",
    "automobile",
    "bird",
    "cat",
    "deer",
    "dog",
    "frog",
    "horse",
    "ship",
    "truck",
]
VEHICLES = ("airplane", "automobile", "ship", "truck")
DOMAINS = {
    "banking": "freeze_account routing pin_change bill_due pay_bill account_blocked interest_rate min_payment "
    "bill_balance transfer order_checks balance spending_history transactions report_fraud",
    "credit_cards": "replacement_card_duration expiration_date damaged_card improve_credit_score report_lost_card "
    "card_declined credit_limit_change apr redeem_rewards credit_limit rewards_balance application_status "
    "credit_score new_card international_fees",
    "kitchen": "food_last confirm_reservation how_busy ingredients_list calories nutrition_info recipe "
    "restaurant_reviews restaurant_reservation meal_suggestion restaurant_suggestion cancel_reservation "
    "ingredient_substitution cook_time accept_reservations",
    "home": "what_song play_music todo_list_update reminder reminder_update calendar_update order_status "
    "update_playlist shopping_list calendar next_song order todo_list shopping_list_update smart_home",
    "auto": "current_location oil_change_when oil_change_how uber traffic tire_pressure schedule_maintenance gas mpg "
    "distance directions last_maintenance gas_type tire_change jump_start",
    "travel": "plug_type travel_notification translate flight_status international_visa timezone exchange_rate "
    "travel_suggestion travel_alert vaccines lost_luggage book_flight book_hotel carry_on car_rental",
    "utility": "weather alarm date find_phone share_location timer make_call calculator definition "
    "measurement_conversion flip_coin spelling time roll_dice text",
    "work": "pto_request_status next_holiday insurance_change insurance meeting_schedule payday taxes income "
    "rollover_401k pto_balance pto_request w2 schedule_meeting direct_deposit pto_used",
    "small_talk": "who_made_you meaning_of_life who_do_you_work_for do_you_have_pets what_are_your_hobbies fun_fact "
    "what_is_your_name where_are_you_from goodbye thank_you greeting tell_joke are_you_a_bot how_old_are_you "
    "what_can_i_ask_you",
    "meta": "change_speed user_name whisper_mode yes change_volume no change_language repeat change_accent cancel "
    "sync_device change_user_name change_ai_name reset_settings maybe",
}


def images(path: Path) -> tuple[np.ndarray, ...]:
    def rows(file: Path, part: str) -> np.ndarray:
        pack = np.load(file)
        return pack[part].astype("float32") * pack["scale"] + (
            pack["offset"] if "offset" in pack.files else 0
        )

    def labels(part: str) -> np.ndarray:
        names = [IMAGES[i] for i in np.load(path)[f"{part}_labels"]]
        return np.array(
            [f"{'vehicle' if name in VEHICLES else 'animal'}/{name}" for name in names]
        )

    outside = rows(path.with_name(path.name.replace("cifar10", "mnist")), "test")[::3]
    return (
        rows(path, "train")[::2],
        labels("train")[::2],
        rows(path, "test"),
        labels("test"),
        outside,
    )


def texts(path: Path) -> tuple[np.ndarray, ...]:
    domain = {
        intent: name for name, intents in DOMAINS.items() for intent in intents.split()
    }
    pack = np.load(path)
    train, test = (
        np.array([f"{domain[y]}/{y}" for y in pack[f"{part}_y"].tolist()])
        for part in ("train", "test")
    )
    return pack["train"], train, pack["test"], test, pack["oos_test"]


def held_out(kind: str, y: np.ndarray, seed: int) -> list[str]:
    tree, rng = LabelTree.of(np.unique(y).tolist()), np.random.default_rng(seed)
    sizes = (
        {"animal": 2, "vehicle": 1}
        if kind == "images"
        else dict.fromkeys(tree.level(1), 3)
    )
    return [
        label
        for node, n in sizes.items()
        for label in rng.choice(tree.leaves(node), n, replace=False).tolist()
    ]


def main(kind: str, path: Path) -> None:
    X, y, Q, truth, outside = images(path) if kind == "images" else texts(path)
    results: dict[
        tuple[str, tuple[float, float]], list[tuple[float, float, float]]
    ] = {}
    for seed in range(DRAWS):
        held = held_out(kind, y, seed)
        train = ~np.isin(y, held)
        model = recipe("kernel", calibrate=True).fit(X[train], y[train])
        new = np.isin(truth, held)
        print(
            f"draw {seed}: accuracy {100 * model.score(Q[~new], truth[~new]):.1f} %",
            flush=True,
        )
        groups = {
            "class known": (Q[~new], truth[~new]),
            "class new": (Q[new], truth[new]),
            "outside": (outside, None),
        }
        for name, (rows, labels) in groups.items():
            known = model.known(rows)
            rejected = np.flatnonzero(known < UNKNOWN)
            P = model.predict_proba(rows[rejected])
            for least, p in RULES:
                nodes = model.tree_.deepest(P, minimum=least)
                given = [
                    i
                    for i, node in enumerate(nodes)
                    if node and known[rejected[i]] >= p
                ]
                of_class = None if labels is None else labels[rejected]
                right = [
                    of_class is not None
                    and of_class[i].startswith(f"{nodes[i].label}/")
                    for i in given
                ]
                shares = (
                    len(rejected) / len(rows),
                    len(given) / max(len(nodes), 1),
                    float(np.mean(right or [0])),
                )
                results.setdefault((name, (least, p)), []).append(shares)
    print(
        "| inputs | least probability, p-value | rejected | of these with a node | node right |"
    )
    print("|---|---:|---:|---:|---:|")
    for (name, (least, p)), draws in results.items():
        rejected, given, right = 100 * np.mean(draws, axis=0)
        print(f"| {name} | {least}, {p} | {rejected:.1f} | {given:.1f} | {right:.1f} |")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
