// Decides between the field and the parameters of the images. Light that depends on the
// viewing direction can be in the field, whose colours depend on the direction, or in exposures that
// change as slowly with it. Such a trend is the field's, except where the image files give exposures.
// Three phases:
//   until FIRST_STEPS  only the mean is taken out, because exposures are still far from their values
//   once               the trend is taken out, first its linear terms, then all
//   afterwards         the trend of each change is taken out
// The trend is that of the views whose value is near 0: views with other exposures weigh little (Geman
// and McClure's estimator; Black and Rangarajan, IJCV 1996). Of the other parameters only the mean over
// the views is taken out.
// The including file declares STATE as `appearance_words` and `error_cells`, and CAMERAS as `cameras`.
// Pass: update_appearance.

const uint MOST_TERMS = 9u;     // of a polynomial of the viewing direction up to the second degree
const uint LINEAR_TERMS = 4u;
const uint EQUATIONS = MOST_TERMS * (MOST_TERMS + 1u) / 2u; // elements of a symmetric matrix
const uint FIRST_STEPS = 512u;
const uint ROUNDS = 8u;         // of the robust fit, with linear terms, and with all
const float TYPICAL = 0.2;      // stops: a value this far from 0 has a quarter of the weight
const float RIDGE = 1e-3;       // share of the weights; terms that the views do not determine stay 0

bool is_early = state.step < FIRST_STEPS;
bool is_fit = !is_early && state.step < FIRST_STEPS + UPDATE_INTERVAL;

// Returns whether only the mean is taken out of a parameter.
bool has_mean_only(uint parameter)
{
    return is_early || parameter > 0u;
}

// First the normal equations by rows up to the diagonal, then their right sides; the sums of all
// invocations are in [...][0].
shared float equations[EQUATIONS + MOST_TERMS][LOCAL_SIZE];

// Returns a parameter without the exposure that the image file gives.
float value_of(uint view, uint parameter)
{
    return appearance_words[word_of(view, parameter)] -
           (parameter == 0u ? appearance_words[word_of(view, APPEARANCE_GIVEN)] : 0.0);
}

// Returns what the trend is taken out of: the value, or its change in this update.
float deviation_of(uint view, uint parameter)
{
    if (has_mean_only(parameter) || is_fit)
        return value_of(view, parameter);
    return appearance_words[word_of(view, parameter)] - error_cells[sum_of(view, parameter)].error;
}

// Returns the number of terms of a parameter's polynomial, for at least four views a term. `few`: at
// most the linear ones.
uint count_terms(uint parameter, bool few)
{
    uint most = has_mean_only(parameter) ? 1u : few ? LINEAR_TERMS : MOST_TERMS;
    return min(most, config.camera_count < 16u ? 1u : config.camera_count < 40u ? LINEAR_TERMS : MOST_TERMS);
}

uint term_count; // set before take_out_trend

// Returns a term of the polynomial for a view.
float term_of(uint view, uint term)
{
    float m[12] = cameras[view].pose;
    vec3 d = vec3(m[2], m[6], m[10]);
    switch (term) {
    case 0u:
        return 1.0;
    case 1u:
        return d.x;
    case 2u:
        return d.y;
    case 3u:
        return d.z;
    case 4u:
        return d.x * d.y;
    case 5u:
        return d.y * d.z;
    case 6u:
        return d.x * d.z;
    case 7u:
        return d.x * d.x - d.y * d.y;
    default:
        return 3.0 * d.z * d.z - 1.0;
    }
}

float weight_of(uint view, uint parameter)
{
    float value = value_of(view, parameter), weight = 1.0 / (1.0 + value * value / (TYPICAL * TYPICAL));
    return has_mean_only(parameter) ? 1.0 : weight * weight;
}

uint element(uint row, uint column)
{
    return row * (row + 1u) / 2u + column;
}

// Sums the normal equations over this invocation's views.
void sum_equations(uint lane, uint parameter)
{
    for (uint i = 0; i < EQUATIONS + MOST_TERMS; i++)
        equations[i][lane] = 0.0;
    for (uint view = lane; view < config.camera_count; view += LOCAL_SIZE) {
        float weight = weight_of(view, parameter), deviation = deviation_of(view, parameter);
        for (uint i = 0; i < term_count; i++) {
            float weighted = weight * term_of(view, i);
            for (uint j = 0; j <= i; j++)
                equations[element(i, j)][lane] += weighted * term_of(view, j);
            equations[EQUATIONS + i][lane] += weighted * deviation;
        }
    }
}

// Solves the normal equations in place (Cholesky): the coefficients replace the right sides.
void solve_equations()
{
    float ridge = RIDGE * equations[0][0];
    for (uint i = 0; i < term_count; i++) {
        for (uint j = 0; j <= i; j++) {
            float rest = equations[element(i, j)][0] + (i == j ? ridge : 0.0);
            for (uint k = 0; k < j; k++)
                rest -= equations[element(i, k)][0] * equations[element(j, k)][0];
            equations[element(i, j)][0] = i == j ? sqrt(max(rest, 1e-12)) : rest / equations[element(j, j)][0];
        }
        float rest = equations[EQUATIONS + i][0];
        for (uint k = 0; k < i; k++)
            rest -= equations[element(i, k)][0] * equations[EQUATIONS + k][0];
        equations[EQUATIONS + i][0] = rest / equations[element(i, i)][0];
    }
    for (uint i = term_count; i-- > 0u;) {
        float rest = equations[EQUATIONS + i][0];
        for (uint k = i + 1u; k < term_count; k++)
            rest -= equations[element(k, i)][0] * equations[EQUATIONS + k][0];
        equations[EQUATIONS + i][0] = rest / equations[element(i, i)][0];
    }
}

// Takes the trend of a parameter out of all views. All invocations of the workgroup call this function.
void take_out_trend(uint lane, uint parameter)
{
    sum_equations(lane, parameter);
    barrier();
    for (uint i = lane; i < EQUATIONS + MOST_TERMS; i += LOCAL_SIZE)
        for (uint k = 1; k < LOCAL_SIZE; k++)
            equations[i][0] += equations[i][k];
    barrier();
    if (lane == 0u)
        solve_equations();
    barrier();
    for (uint view = lane; view < config.camera_count; view += LOCAL_SIZE) {
        float trend = 0.0;
        for (uint i = 0; i < term_count; i++)
            trend += equations[EQUATIONS + i][0] * term_of(view, i);
        appearance_words[word_of(view, parameter)] -= trend;
    }
    barrier();
}
